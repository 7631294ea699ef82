/* SPDX-License-Identifier: MIT */
#include "demo/demo.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "demo/demothread.h"
#include "host/version.h"
#include "thread/clock.h"
#include "thread/rights.h"
#include "thread/usage.h"

#define WATCHDOG_PRIORITY 99 /* demoscript.c lets no thread have it */
#define LOOK_NS           (50 * INT64_C(1000000))
#define START_DELAY_NS    (50 * INT64_C(1000000)) /* for all threads to be asleep */
#define GRACE_NS          (2 * NS_PER_S) /* for threads that were told to stop */
#define READY_NS          (5 * NS_PER_S)
#define EVENTS_PER_LINE   512

struct demo {
	struct demo_stage stage;
	struct demo_thread *thread;
	unsigned int count, started;
	struct hostlink *link;
	enum hostlink_end ended_by;
	bool too_long;
	int64_t end_ns; /* since the start */
	bool locked;
};

static void wait_ns(int64_t ns)
{
	const struct timespec pause = ns_timespec(ns);

	nanosleep(&pause, NULL);
}

static enum exit_status refused(struct emit *out, const struct demo_thread *t)
{
	char message[512], priority[8] = "";

	if (!t->refusal.cause) {
		snprintf(message, sizeof(message), "thread %s: cannot %s: %s",
			 t->script.name, t->failed_at, strerror(t->failure));
		return emit_error(out, "other", message, "");
	}
	if (policy_has_priority(t->script.policy.kind))
		snprintf(priority, sizeof(priority), " %u", t->script.policy.priority);
	snprintf(message, sizeof(message), "thread %s: cannot be %s%s: %s%s%s",
		 t->script.name, policy_name(t->script.policy.kind), priority,
		 strerror(t->failure), *t->refusal.why ? ": " : "", t->refusal.why);
	return emit_error(out, t->refusal.cause, message, t->refusal.remedy);
}

/* Before the first thread: what is mapped from here on is there and stays. */
static enum exit_status lock_memory(struct emit *out)
{
	struct rlimit limit = { 0 };
	char message[256];
	int err;

	if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0)
		return EXIT_DONE;
	err = errno;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	snprintf(message, sizeof(message),
		 "cannot lock memory: %s (RLIMIT_MEMLOCK is %lu KB, and the process "
		 "lacks CAP_IPC_LOCK)",
		 strerror(err), (unsigned long)(limit.rlim_cur / 1024));
	return emit_error(out, "memlock", message,
			  "raise it (ulimit -l, LimitMEMLOCK=, in a container --ulimit "
			  "memlock=-1), or run through sudo");
}

static int make_locks(struct demo_stage *stage, bool inherit)
{
	pthread_mutexattr_t attr;
	int err;

	pthread_mutexattr_init(&attr);
	err = pthread_mutexattr_setprotocol(&attr, inherit ? PTHREAD_PRIO_INHERIT
							   : PTHREAD_PRIO_NONE);
	for (int i = 0; !err && i < DEMOSCRIPT_LOCKS; i++)
		err = pthread_mutex_init(&stage->lock[i], &attr);
	pthread_mutexattr_destroy(&attr);
	return -err;
}

/* The last: the first has most of the interrupts. */
static enum exit_status choose_cpu(struct demo *d, const struct options *o,
				   struct emit *out)
{
	char cpus[CPULIST_TEXT_MAX], message[256];
	struct cpulist usable = { 0 }, reachable = { 0 };

	cpulist_find_reachable(&usable, &reachable);
	for (int cpu = cpulist_next(&usable, 0); cpu >= 0;
	     cpu = cpulist_next(&usable, (unsigned int)cpu + 1))
		d->stage.cpu = cpu;
	d->stage.cpus = usable;
	if (!o->cpus_given)
		return EXIT_DONE;
	d->stage.cpu = cpulist_next(&o->cpus, 0);
	if (!cpulist_has(&usable, (unsigned int)d->stage.cpu))
		d->stage.cpus = reachable;
	if (cpulist_has(&reachable, (unsigned int)d->stage.cpu))
		return EXIT_DONE;
	cpulist_format(&reachable, cpus, sizeof(cpus));
	snprintf(message, sizeof(message),
		 "this process may not use CPU %d, but %.150s", d->stage.cpu, cpus);
	return emit_error(out, "cpu", message, "name one of those with --cpu");
}

/* Whatever has that CPU, this thread tells of it. */
static void leave_cpu(const struct demo_stage *stage)
{
	struct cpulist others = stage->cpus, one = { 0 };

	cpulist_add(&one, (unsigned int)stage->cpu);
	cpulist_subtract(&others, &one);
	if (cpulist_count(&others))
		cpulist_set_affinity(&others);
}

/* Should the watchdog fail, the kernel ends the process: no thread computes longer. */
static void bound_by_kernel(int64_t duration_ns)
{
	const rlim_t us = (rlim_t)((duration_ns + GRACE_NS) / 1000);
	struct rlimit limit;

	if (getrlimit(RLIMIT_RTTIME, &limit))
		return;
	if (limit.rlim_max > us)
		limit.rlim_max = us;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_RTTIME, &limit);
}

static enum exit_status start_threads(struct demo *d, struct emit *out)
{
	const int64_t until_ns = clock_now_ns() + READY_NS;

	for (unsigned int i = 0; i < d->count; i++) {
		int err = demothread_start(d->thread, i, d->count);
		char message[128];

		if (err) {
			snprintf(message, sizeof(message), "cannot start thread %s: %s",
				 d->thread[i].script.name, strerror(-err));
			return emit_error(
				out, "other", message,
				"look at RLIMIT_NPROC, RLIMIT_MEMLOCK and the "
				"pids cgroup");
		}
		d->started++;
	}
	for (unsigned int i = 0; i < d->count; i++) {
		struct demo_thread *t = &d->thread[i];
		int state;

		/* acquire: pairs with the release of the state in demothread.c */
		while ((state = atomic_load_explicit(
				&t->state, memory_order_acquire)) == DEMO_STARTING &&
		       clock_now_ns() < until_ns)
			wait_ns(1000000);
		if (state == DEMO_FAILED)
			return refused(out, t);
		if (state == DEMO_STARTING)
			return emit_error(out, "starved",
					  "a thread of the demonstration did not run",
					  "something has its CPU: find it with "
					  "rtscope tasks --rt");
	}
	return EXIT_DONE;
}

static enum exit_status become_watchdog(struct emit *out)
{
	const struct policy highest = { .kind = POLICY_FIFO,
					.priority = WATCHDOG_PRIORITY };
	struct refusal refusal;
	char message[512];
	int err = policy_set(&highest);

	if (!err)
		return EXIT_DONE;
	policy_explain(&highest, -err, &refusal);
	snprintf(message, sizeof(message),
		 "the watchdog cannot be fifo %d: %s%s%s; without it no demonstration "
		 "begins",
		 WATCHDOG_PRIORITY, strerror(-err), *refusal.why ? ": " : "",
		 refusal.why);
	return emit_error(out, refusal.cause, message, refusal.remedy);
}

static bool all_done(const struct demo *d)
{
	for (unsigned int i = 0; i < d->count; i++)
		/* acquire: pairs with the release of done in demothread.c */
		if (!atomic_load_explicit(&d->thread[i].done, memory_order_acquire))
			return false;
	return true;
}

/* False if threads do not end although they were told to. */
static bool watch_over(struct demo *d, int64_t duration_ns)
{
	int64_t limit_ns = d->stage.start_ns + duration_ns, now_ns;

	while (!all_done(d)) {
		wait_ns(LOOK_NS);
		now_ns = clock_now_ns();
		if (atomic_load_explicit(&d->stage.stop, memory_order_relaxed)) {
			if (now_ns > limit_ns + GRACE_NS)
				return false;
			continue;
		}
		d->ended_by = hostlink_check(d->link, now_ns);
		d->too_long = now_ns > limit_ns;
		if (d->too_long || d->ended_by != HOSTLINK_UP) {
			limit_ns = now_ns;
			atomic_store_explicit(&d->stage.stop, true,
					      memory_order_relaxed);
		}
	}
	d->end_ns = clock_now_ns() - d->stage.start_ns;
	return true;
}

static void emit_begin_line(struct emit *out, const struct demo *d)
{
	char cpus[CPULIST_TEXT_MAX];
	struct utsname name;

	uname(&name);
	emit_begin(out, "demo");
	emit_int(out, "schema", CONTRACT_SCHEMA);
	emit_text(out, "arch", name.machine);
	emit_text(out, "kernel", name.release);
	emit_int(out, "cpu", d->stage.cpu);
	emit_int(out, "start_ns", d->stage.start_ns);
	emit_bool(out, "memory_locked", d->locked);
	emit_int(out, "unit_ns", DEMO_UNIT_NS);
	emit_int(out, "pause_ns", DEMO_PAUSE_NS);
	emit_open(out, "threads", '[');
	for (unsigned int i = 0; i < d->count; i++) {
		const struct demo_thread *t = &d->thread[i];
		const bool deadline = t->got.kind == POLICY_DEADLINE;

		cpulist_format(&t->affinity, cpus, sizeof(cpus));
		emit_open(out, NULL, '{');
		emit_text(out, "name", t->script.name);
		emit_int(out, "tid", t->tid);
		emit_text(out, "policy", policy_name(t->got.kind));
		emit_int(out, "priority", t->got.priority);
		emit_int(out, "runtime_ns", deadline ? (int64_t)t->got.runtime_ns : 0);
		emit_int(out, "period_ns", deadline ? (int64_t)t->got.period_ns : 0);
		emit_int(out, "slice_ns", t->slice_ns);
		emit_text(out, "affinity", cpus);
		emit_close(out, '}');
	}
	emit_close(out, ']');
	emit_end_later(out);
}

static void emit_events(struct emit *out, const struct demo_thread *t)
{
	for (unsigned int i = 0; i < t->events; i++) {
		const struct demo_event *e = &t->event[i];

		if (i % EVENTS_PER_LINE == 0) {
			emit_begin(out, "demo_events");
			emit_text(out, "thread", t->script.name);
			emit_open(out, "events", '[');
		}
		emit_open(out, NULL, '[');
		emit_text(out, NULL, demothread_word((enum demo_event_kind)e->kind));
		emit_int(out, NULL, e->step);
		emit_int(out, NULL, e->at_ns);
		emit_int(out, NULL, e->value);
		emit_close(out, ']');
		if (i % EVENTS_PER_LINE == EVENTS_PER_LINE - 1 || i == t->events - 1) {
			emit_close(out, ']');
			emit_end_later(out);
		}
	}
}

static int emit_end_line(struct emit *out, const struct demo *d)
{
	emit_begin(out, "demo_end");
	emit_int(out, "end_ns", d->end_ns);
	emit_text(out, "stopped",
		  d->too_long                  ? "watchdog"
		  : d->ended_by != HOSTLINK_UP ? hostlink_word(d->ended_by)
					       : "");
	emit_open(out, "threads", '[');
	for (unsigned int i = 0; i < d->count; i++) {
		const struct demo_thread *t = &d->thread[i];

		emit_open(out, NULL, '{');
		emit_text(out, "name", t->script.name);
		emit_int(out, "cpu_time_ns", t->usage.cpu_time_ns);
		emit_int(out, "minor_faults", t->usage.minor_faults);
		emit_int(out, "major_faults", t->usage.major_faults);
		emit_int(out, "voluntary_switches", t->usage.voluntary_switches);
		emit_int(out, "involuntary_switches", t->usage.involuntary_switches);
		emit_int(out, "events", t->events);
		emit_int(out, "events_lost", t->events_lost);
		emit_close(out, '}');
	}
	emit_close(out, ']');
	return emit_end(out);
}

/* Of this process with threads that have no CPU, even for their end: on others they may
 * end, and before that nobody can reap the process. */
static _Noreturn void exit_without_cpu(const struct demo *d, enum exit_status status)
{
	cpu_set_t others;

	CPU_ZERO(&others);
	for (int cpu = cpulist_next(&d->stage.cpus, 0); cpu >= 0;
	     cpu = cpulist_next(&d->stage.cpus, (unsigned int)cpu + 1))
		if (cpu != d->stage.cpu)
			CPU_SET((unsigned int)cpu, &others);
	for (unsigned int i = 0; i < d->started; i++)
		if (!atomic_load_explicit(&d->thread[i].ended, memory_order_acquire))
			pthread_setaffinity_np(d->thread[i].thread, sizeof(others),
					       &others);
	_exit(status);
}

/* False if a thread has no CPU even for its end. */
static bool join_threads(struct demo *d)
{
	const int64_t until_ns = clock_now_ns() + GRACE_NS;

	/* those that wait for the start end, too */
	atomic_store_explicit(&d->stage.stop, true, memory_order_relaxed);
	for (unsigned int i = 0; i < d->started; i++) {
		/* acquire: pairs with the release of ended in demothread.c */
		while (!atomic_load_explicit(&d->thread[i].ended,
					     memory_order_acquire)) {
			if (clock_now_ns() > until_ns)
				return false;
			wait_ns(1000000);
		}
		pthread_join(d->thread[i].thread, NULL);
	}
	return true;
}

/* With all threads ready: lets them go, and tells what they did. */
static enum exit_status perform(struct demo *d, struct options *o, struct emit *out)
{
	const struct policy ordinary = { .kind = POLICY_OTHER };
	enum exit_status status = become_watchdog(out);

	if (status != EXIT_DONE)
		return status;
	d->stage.start_ns = clock_now_ns() + START_DELAY_NS;
	/* release: pairs with the threads' acquire of go */
	atomic_store_explicit(&d->stage.go, true, memory_order_release);
	if (!watch_over(d, o->duration_ns)) {
		emit_error(out, "starved", "a thread of the demonstration did not end",
			   "something has its CPU: find it with rtscope tasks --rt");
		exit_without_cpu(d, EXIT_INVALID);
	}
	policy_set(&ordinary);
	emit_begin_line(out, d);
	for (unsigned int i = 0; i < d->count; i++)
		emit_events(out, &d->thread[i]);
	return emit_end_line(out, d) ? EXIT_INVALID : EXIT_DONE;
}

static enum exit_status prepare(struct demo *d, struct options *o, struct emit *out)
{
	int err = make_locks(&d->stage, o->inherit);

	if (err)
		return emit_error(
			out, "other",
			"this kernel has no mutexes with priority inheritance", "");
	if (choose_cpu(d, o, out) != EXIT_DONE)
		return EXIT_INVALID;
	if (o->lock_memory && lock_memory(out) != EXIT_DONE)
		return EXIT_INVALID;
	d->locked = usage_locked_kb() > 0; /* some kernels' mlockall() does nothing */
	bound_by_kernel(o->duration_ns);
	leave_cpu(&d->stage);
	return start_threads(d, out);
}

enum exit_status demo(struct options *o, struct emit *out)
{
	struct demo d = { .link = &o->link, .count = (unsigned int)o->operands };
	enum exit_status status;

	rights_drop(false);
	d.thread = demothread_alloc(d.count);
	if (!d.thread)
		return emit_error(out, "memlock", "no memory for the threads", "");
	for (unsigned int i = 0; i < d.count; i++) {
		d.thread[i].stage = &d.stage;
		demoscript_parse(o->operand[i], &d.thread[i].script);
	}
	status = prepare(&d, o, out);
	if (status == EXIT_DONE)
		status = perform(&d, o, out);
	if (!join_threads(&d))
		exit_without_cpu(&d, status);
	demothread_free(d.thread, d.count);
	return status;
}
