/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo/demoscript.h"
#include "demo/demothread.h"
#include "journal/knob.h"
#include "measure/samples.h"
#include "start/startoptions.h"
#include "trace/worst.h"

#define MIN_INTERVAL_NS INT64_C(10000) /* 10 us: below that the loop measures itself */
#define MAX_INTERVAL_NS INT64_C(10000000000)
#define MIN_WINDOW_NS   INT64_C(10000000) /* a tick of /proc */
#define MAX_WINDOW_NS   INT64_C(3600000000000)
#define LOAD_WINDOW_NS  INT64_C(1000000000) /* of a load that names none */
#define MAX_STACKS      4096
#define MAX_DURATION_NS (INT64_C(366) * 86400 * 1000000000)

enum {
	OPT_CPUS = 256,
	OPT_POLICY,
	OPT_PRIORITY,
	OPT_RUNTIME,
	OPT_INTERVAL,
	OPT_DURATION,
	OPT_PHASE,
	OPT_WORST,
	OPT_HOLD,
	OPT_SET,
	OPT_HOST_LINK,
	OPT_HEARTBEAT,
	OPT_MEMORY,
	OPT_LOG,
	OPT_SCRATCH,
	OPT_USER,
	OPT_WINDOW,
	OPT_APPLIED,
	OPT_TRACE,
	OPT_GROWTH,
	OPT_KEEP_SAMPLES,
	OPT_EVENT,
	OPT_NAME,
	OPT_PID,
	OPT_STACKS,
	OPT_PROBE,
	OPT_LOCK_MEMORY,
	OPT_INHERIT,
	OPT_DEADLINE,
	OPT_PERIOD,
	OPT_NICE,
	OPT_RESET_ON_FORK,
	OPT_GROUPS,
	OPT_CAPABILITIES,
	OPT_IO,
	OPT_GIVEN,
	OPT_SHIELD,
	OPT_ERRORS,
};

static const struct option long_options[] = {
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "policy", required_argument, NULL, OPT_POLICY },
	{ "priority", required_argument, NULL, OPT_PRIORITY },
	{ "runtime-ns", required_argument, NULL, OPT_RUNTIME },
	{ "interval-ns", required_argument, NULL, OPT_INTERVAL },
	{ "duration-ns", required_argument, NULL, OPT_DURATION },
	{ "phase-ns", required_argument, NULL, OPT_PHASE },
	{ "worst", required_argument, NULL, OPT_WORST },
	{ "hold-cpu-awake", no_argument, NULL, OPT_HOLD },
	{ "set", required_argument, NULL, OPT_SET },
	{ "host-link", no_argument, NULL, OPT_HOST_LINK },
	{ "heartbeat", no_argument, NULL, OPT_HEARTBEAT },
	{ "memory-limit", required_argument, NULL, OPT_MEMORY },
	{ "log", required_argument, NULL, OPT_LOG },
	{ "scratch", required_argument, NULL, OPT_SCRATCH },
	{ "user", required_argument, NULL, OPT_USER },
	{ "window-ns", required_argument, NULL, OPT_WINDOW },
	{ "applied", no_argument, NULL, OPT_APPLIED },
	{ "trace", no_argument, NULL, OPT_TRACE },
	{ "growth", no_argument, NULL, OPT_GROWTH },
	{ "keep-samples", no_argument, NULL, OPT_KEEP_SAMPLES },
	{ "event", required_argument, NULL, OPT_EVENT },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "pid", required_argument, NULL, OPT_PID },
	{ "stacks", required_argument, NULL, OPT_STACKS },
	{ "probe", required_argument, NULL, OPT_PROBE },
	{ "lock-memory", no_argument, NULL, OPT_LOCK_MEMORY },
	{ "inherit", no_argument, NULL, OPT_INHERIT },
	{ "deadline-ns", required_argument, NULL, OPT_DEADLINE },
	{ "period-ns", required_argument, NULL, OPT_PERIOD },
	{ "nice", required_argument, NULL, OPT_NICE },
	{ "reset-on-fork", no_argument, NULL, OPT_RESET_ON_FORK },
	{ "groups", required_argument, NULL, OPT_GROUPS },
	{ "capabilities", required_argument, NULL, OPT_CAPABILITIES },
	{ "io", required_argument, NULL, OPT_IO },
	{ "given", required_argument, NULL, OPT_GIVEN },
	{ "shield", no_argument, NULL, OPT_SHIELD },
	{ "errors", no_argument, NULL, OPT_ERRORS },
	{ NULL, 0, NULL, 0 },
};

static const struct {
	const char *name;
	enum command command;
} commands[] = {
	{ "measure", COMMAND_MEASURE }, { "load", COMMAND_LOAD },
	{ "keep", COMMAND_KEEP },       { "read", COMMAND_READ },
	{ "disk", COMMAND_DISK },       { "apply", COMMAND_APPLY },
	{ "hold", COMMAND_HOLD },       { "restore", COMMAND_RESTORE },
	{ "tasks", COMMAND_TASKS },     { "watch", COMMAND_WATCH },
	{ "cycles", COMMAND_CYCLES },   { "demo", COMMAND_DEMO },
	{ "start", COMMAND_START },     { "version", COMMAND_VERSION },
};

static int __attribute__((format(printf, 2, 3))) refuse(char error[OPTIONS_TEXT],
							const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, OPTIONS_TEXT, format, args);
	va_end(args);
	return -EINVAL;
}

static int parse_number(const char *text, int64_t low, int64_t high, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	return errno || end == text || *end || *out < low || *out > high ? -EINVAL : 0;
}

static int parse_user(const char *text, struct options *o)
{
	int64_t uid, gid;
	char copy[32], *colon;

	snprintf(copy, sizeof(copy), "%s", text);
	colon = strchr(copy, ':');
	if (!colon)
		return -EINVAL;
	*colon = '\0';
	if (parse_number(copy, 0, UINT32_MAX - 1, &uid) ||
	    parse_number(colon + 1, 0, UINT32_MAX - 1, &gid))
		return -EINVAL;
	o->user_given = true;
	o->uid = (uid_t)uid;
	o->gid = (gid_t)gid;
	return 0;
}

static int parse_start_option(int option, const char *text, struct options *o)
{
	int64_t number = 0;
	char *end;
	int err;

	switch (option) {
	case OPT_DEADLINE:
		err = parse_number(text, 1024, MAX_INTERVAL_NS, &number);
		o->policy.deadline_ns = (uint64_t)number;
		return err;
	case OPT_PERIOD:
		err = parse_number(text, 1024, MAX_INTERVAL_NS, &number);
		o->policy.period_ns = (uint64_t)number;
		return err;
	case OPT_NICE:
		err = parse_number(text, -20, 19, &number);
		o->nice_given = true;
		o->nice = (int)number;
		return err;
	case OPT_RESET_ON_FORK:
		o->reset_on_fork = true;
		return 0;
	case OPT_GROUPS:
		o->groups = startoptions_groups(text, o->group, OPTIONS_MAX_GROUPS);
		return o->groups < 0 ? o->groups : 0;
	case OPT_CAPABILITIES:
		o->capabilities = strtoull(text, &end, 16);
		return *text && !*end ? 0 : -EINVAL;
	case OPT_IO:
		return startoptions_io(text, &o->io_class, &o->io_level);
	case OPT_SHIELD:
		o->shield = true;
		return 0;
	default: /* OPT_GIVEN */
		o->given_path = text;
		return 0;
	}
}

/* NAME=VALUE or NAME:LIST=VALUE */
static int parse_knob(char *text, struct options *o)
{
	char *equals = strchr(text, '=');
	char *colon = strchr(text, ':');

	if (!equals || o->knobs == OPTIONS_MAX_KNOBS)
		return -EINVAL;
	*equals = '\0';
	if (colon && colon < equals)
		*colon++ = '\0';
	else
		colon = NULL;
	if (!knob_known(text) || !knob_value_ok(equals + 1) ||
	    (colon && (!*colon || !options_is_list(colon))))
		return -EINVAL;
	o->knob[o->knobs++] = (struct knob_change){ text, colon, equals + 1 };
	return 0;
}

/* NAME:OFFSET:PATH; the path last, because it may have any character */
static int parse_probe(char *text, struct options *o)
{
	char *offset = strchr(text, ':');
	char *path = offset ? strchr(offset + 1, ':') : NULL;
	int64_t number;

	if (!path || offset == text || path[1] != '/' ||
	    o->probes == OPTIONS_MAX_PROBES)
		return -EINVAL;
	*offset++ = *path++ = '\0';
	if (parse_number(offset, 0, INT64_MAX, &number))
		return -EINVAL;
	o->probe[o->probes++] = (struct probe){ text, path, (uint64_t)number };
	return 0;
}

static int parse_number_option(int option, const char *text, struct options *o)
{
	int64_t number;
	int err;

	switch (option) {
	case OPT_PRIORITY:
		err = parse_number(text, 1, 99, &number);
		o->policy.priority = (unsigned int)number;
		return err;
	case OPT_RUNTIME:
		err = parse_number(text, 1024, MAX_INTERVAL_NS, &number);
		o->policy.runtime_ns = (uint64_t)number;
		return err;
	case OPT_WORST:
		err = parse_number(text, 0, WORST_MAX, &number);
		o->worst = (unsigned int)number;
		return err;
	case OPT_PID:
		err = parse_number(text, 1, INT32_MAX, &number);
		o->pid = (int)number;
		return err;
	case OPT_STACKS:
		err = parse_number(text, 0, MAX_STACKS, &number);
		o->stacks = (unsigned int)number;
		return err;
	case OPT_INTERVAL:
		return parse_number(text, MIN_INTERVAL_NS, MAX_INTERVAL_NS,
				    &o->interval_ns);
	case OPT_DURATION:
		return parse_number(text, 1, MAX_DURATION_NS, &o->duration_ns);
	case OPT_WINDOW:
		return parse_number(text, MIN_WINDOW_NS, MAX_WINDOW_NS, &o->window_ns);
	default: /* OPT_PHASE */
		return parse_number(text, 0, MAX_INTERVAL_NS, &o->phase_ns);
	}
}

static int parse_option(int option, char *text, struct options *o)
{
	switch (option) {
	case OPT_CPUS:
		o->cpus_given = true;
		return cpulist_parse(text, &o->cpus);
	case OPT_POLICY:
		o->policy_given = true;
		return policy_parse(text, &o->policy.kind);
	case OPT_SET:
		return parse_knob(text, o);
	case OPT_PROBE:
		return parse_probe(text, o);
	case OPT_USER:
		return parse_user(text, o);
	case OPT_APPLIED:
		o->applied_too = true;
		return 0;
	case OPT_HOLD:
		o->hold_cpu_awake = true;
		return 0;
	case OPT_TRACE:
		o->trace = true;
		return 0;
	case OPT_GROWTH:
	case OPT_KEEP_SAMPLES:
		*(option == OPT_GROWTH ? &o->growth : &o->keep_samples) = true;
		return 0;
	case OPT_EVENT:
		o->event_text = text;
		return event_parse(text, &o->event);
	case OPT_LOCK_MEMORY:
	case OPT_INHERIT:
		*(option == OPT_INHERIT ? &o->inherit : &o->lock_memory) = true;
		return 0;
	case OPT_HOST_LINK:
		o->link.watch = true;
		return 0;
	case OPT_HEARTBEAT:
		o->link.watch = true;
		o->link.heartbeat = true;
		return 0;
	case OPT_MEMORY:
		o->memory_limit = text;
		return knob_value_ok(text) ? 0 : -EINVAL;
	case OPT_LOG:
	case OPT_NAME:
		*(option == OPT_LOG ? &o->log_path : &o->name) = text;
		return 0;
	case OPT_ERRORS:
		o->errors = true;
		return 0;
	case OPT_SCRATCH:
		o->scratch = text;
		return 0;
	case '?':
		return -EINVAL;
	default:
		return option < OPT_DEADLINE ? parse_number_option(option, text, o)
					     : parse_start_option(option, text, o);
	}
}

/* Options that fit together; each alone is in range already. */
static int check_measure(struct options *o, char error[OPTIONS_TEXT])
{
	const char *why;

	for (unsigned int i = 0; i < o->knobs; i++)
		if (o->knob[i].indices)
			return refuse(error,
				      "--set %s: measure sets it on the CPUs "
				      "that are measured: name no others",
				      o->knob[i].name);
	if (policy_has_priority(o->policy.kind) != (o->policy.priority > 0))
		return refuse(error, "policy %s %s --priority",
			      policy_name(o->policy.kind),
			      o->policy.priority ? "takes no" : "needs a");
	if (o->policy.kind == POLICY_DEADLINE && !event_is_timer(&o->event))
		return refuse(error,
			      "--event %s: a SCHED_DEADLINE thread runs in periods of "
			      "its own: choose --policy fifo or rr",
			      event_name(&o->event));
	if (o->policy.kind == POLICY_DEADLINE) {
		if (o->cpus_given)
			return refuse(error,
				      "a SCHED_DEADLINE thread cannot be pinned: "
				      "leave --cpus out, then one thread for each "
				      "usable CPU is measured, wherever it runs");
		o->policy.period_ns = (uint64_t)o->interval_ns;
		if (!o->policy.runtime_ns)
			o->policy.runtime_ns = (uint64_t)o->interval_ns / 4;
		if (o->policy.runtime_ns > o->policy.period_ns)
			return refuse(error, "--runtime-ns exceeds --interval-ns");
	}
	why = event_fit(&o->event, o->interval_ns);
	if (why)
		return refuse(error, "--event %s: %s", o->event_text, why);
	if (o->duration_ns < 2 * o->interval_ns)
		return refuse(error, "--duration-ns is less than two intervals");
	if (o->keep_samples && !event_is_timer(&o->event))
		return refuse(error,
			      "--event %s: leave --keep-samples out, which is for "
			      "timers",
			      event_name(&o->event));
	if (o->keep_samples && o->policy.kind == POLICY_DEADLINE)
		return refuse(error, "--keep-samples: threads of policy deadline have "
				     "no CPU to keep them by");
	if (o->keep_samples && o->duration_ns / o->interval_ns >= SAMPLES_MAX)
		return refuse(error,
			      "--keep-samples: at most %d intervals of each thread "
			      "are kept",
			      SAMPLES_MAX - 1);
	return 0;
}

static int check_demo(const struct options *o, char error[OPTIONS_TEXT])
{
	struct demo_script script;

	if (o->cpus_given && cpulist_count(&o->cpus) != 1)
		return refuse(error, "demo: --cpus takes one CPU");
	if (o->duration_ns > DEMOSCRIPT_MAX_NS)
		return refuse(error, "demo: --duration-ns takes at most %lld",
			      (long long)DEMOSCRIPT_MAX_NS);
	if (o->operands < 1 || o->operands > DEMO_MAX_THREADS)
		return refuse(error, "demo: 1 to %d scripts of threads after --",
			      DEMO_MAX_THREADS);
	for (int i = 0; i < o->operands; i++)
		if (demoscript_parse(o->operand[i], &script))
			return refuse(error, "demo: bad script: %.150s", o->operand[i]);
	return 0;
}

static int check_command(struct options *o, char error[OPTIONS_TEXT])
{
	const char *why;

	switch (o->command) {
	case COMMAND_MEASURE:
		if (o->operands)
			return refuse(error, "unexpected: %.100s", o->operand[0]);
		return check_measure(o, error);
	case COMMAND_LOAD:
		if (!o->window_ns)
			o->window_ns = LOAD_WINDOW_NS;
		return o->operands ? 0 : refuse(error, "load: no command after --");
	case COMMAND_KEEP:
		return o->operands == 1 ? 0 : refuse(error, "keep: name one directory");
	case COMMAND_READ:
	case COMMAND_DISK:
		return o->operands ? 0 : refuse(error, "no paths");
	case COMMAND_APPLY:
	case COMMAND_HOLD:
		return o->knobs && !o->operands
			       ? 0
			       : refuse(error, "what is to be set? --set KNOB=VALUE");
	case COMMAND_TASKS:
	case COMMAND_WATCH:
	case COMMAND_CYCLES:
		if (o->operands)
			return refuse(error, "unexpected: %.100s", o->operand[0]);
		return o->pid || o->command == COMMAND_TASKS
			       ? 0
			       : refuse(error, "which process? --pid PID");
	case COMMAND_DEMO:
		return check_demo(o, error);
	case COMMAND_START:
		if (!o->operands)
			return refuse(error, "start: no command after --");
		why = o->policy_given ? startoptions_misfit(&o->policy) : NULL;
		return why ? refuse(error, "start: %s", why) : 0;
	default:
		return 0;
	}
}

int options_parse(int argc, char **argv, struct options *out, char error[OPTIONS_TEXT])
{
	int option, at = 0;

	*out = (struct options){
		.policy = { .kind = POLICY_FIFO },
		.interval_ns = 1000000,
		.duration_ns = 10 * INT64_C(1000000000),
		.worst = 16,
		.name = "rtscope",
		.stacks = 32,
	};

	if (argc < 2)
		return refuse(
			error,
			"no command: measure, load, keep, read, disk, apply, hold, "
			"restore, tasks, watch, cycles, demo, start or version");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[1], commands[i].name) == 0) {
			out->command = commands[i].command;
			at = 2;
		}
	}
	if (!at)
		return refuse(error, "unknown command: %.100s", argv[1]);

	opterr = optind =
		0; /* begin anew, in every libc; the command stands for the program */
	argc--, argv++;
	/* "+": what follows the first operand belongs to the load */
	while ((option = getopt_long(argc, argv, "+", long_options, NULL)) != -1) {
		const char *written = argv[optind - 1];

		if (parse_option(option, optarg, out))
			return refuse(error, "bad option or value: %.150s", written);
	}
	out->operand = argv + optind;
	out->operands = argc - optind;
	return check_command(out, error);
}
