/* SPDX-License-Identifier: MIT */
#include "demo/demoscript.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRIPT_MAX     1024
#define MIN_RUNTIME_NS 1024 /* the kernel's least runtime of SCHED_DEADLINE */

static const struct {
	const char *word;
	int64_t most; /* of its argument; -1: it has none */
} ops[] = {
	[DEMO_AT] = { "at", DEMOSCRIPT_MAX_NS },
	[DEMO_SLEEP] = { "sleep", DEMOSCRIPT_MAX_NS },
	[DEMO_EVERY] = { "every", DEMOSCRIPT_MAX_NS },
	[DEMO_RUN] = { "run", DEMOSCRIPT_MAX_NS },
	[DEMO_UNTIL] = { "until", DEMOSCRIPT_MAX_NS },
	[DEMO_LOCK] = { "lock", DEMOSCRIPT_LOCKS - 1 },
	[DEMO_UNLOCK] = { "unlock", DEMOSCRIPT_LOCKS - 1 },
	[DEMO_YIELD] = { "yield", -1 },
	[DEMO_TOUCH] = { "touch", DEMOSCRIPT_MAX_BYTES },
	[DEMO_ALLOC] = { "alloc", DEMOSCRIPT_MAX_BYTES },
	[DEMO_POOL] = { "pool", DEMOSCRIPT_MAX_BYTES },
	[DEMO_LOOP] = { "loop", DEMOSCRIPT_MAX_LOOPS },
	[DEMO_NEXT] = { "next", -1 },
};

#define OPS (sizeof(ops) / sizeof(ops[0]))

static int parse_number(const char *text, int64_t low, int64_t high, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	return errno || end == text || *end || *out < low || *out > high ? -EINVAL : 0;
}

static int parse_step(char *text, struct demo_step *out)
{
	char *arg = strchr(text, '=');

	if (arg)
		*arg++ = '\0';
	for (size_t i = 0; i < OPS; i++) {
		if (strcmp(ops[i].word, text) != 0)
			continue;
		*out = (struct demo_step){ .op = (enum demo_op)i };
		if (ops[i].most < 0)
			return arg ? -EINVAL : 0;
		return arg ? parse_number(arg, 0, ops[i].most, &out->arg) : -EINVAL;
	}
	return -EINVAL;
}

static int parse_parameter(char *text, struct policy *out)
{
	char *period = strchr(text, '/');
	int64_t number, period_ns;

	if (out->kind == POLICY_DEADLINE) {
		if (!period)
			return -EINVAL;
		*period++ = '\0';
		if (parse_number(text, MIN_RUNTIME_NS, DEMOSCRIPT_MAX_NS, &number) ||
		    parse_number(period, number, DEMOSCRIPT_MAX_NS, &period_ns))
			return -EINVAL;
		out->runtime_ns = (uint64_t)number;
		out->period_ns = (uint64_t)period_ns;
		return 0;
	}
	/* 99 is the watchdog's */
	if (policy_has_priority(out->kind) ? parse_number(text, 1, 98, &number)
					   : parse_number(text, 0, 0, &number))
		return -EINVAL;
	out->priority = (unsigned int)number;
	return 0;
}

/* Loops are not nested, and end. */
static bool loops_end(const struct demo_script *s)
{
	bool open = false;

	for (unsigned int i = 0; i < s->steps; i++) {
		if (s->step[i].op != DEMO_LOOP && s->step[i].op != DEMO_NEXT)
			continue;
		if (open == (s->step[i].op == DEMO_LOOP))
			return false;
		open = !open;
	}
	return !open;
}

static int parse_steps(char *text, struct demo_script *out)
{
	char *rest = text;

	for (char *one; (one = strsep(&rest, ","));) {
		if (out->steps == DEMOSCRIPT_MAX_STEPS ||
		    parse_step(one, &out->step[out->steps++]))
			return -EINVAL;
	}
	return loops_end(out) ? 0 : -EINVAL;
}

static bool name_ok(const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '-')
			return false;
	return n > 0 && n < DEMOSCRIPT_NAME;
}

int demoscript_parse(const char *text, struct demo_script *out)
{
	char copy[SCRIPT_MAX], *rest = copy;
	const char *name, *policy;
	char *parameter;

	*out = (struct demo_script){ 0 };
	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, strlen(text) + 1);
	name = strsep(&rest, ":");
	policy = strsep(&rest, ":");
	parameter = strsep(&rest, ":");
	if (!rest || !name_ok(name) || policy_parse(policy, &out->policy.kind) ||
	    parse_parameter(parameter, &out->policy))
		return -EINVAL;
	snprintf(out->name, sizeof(out->name), "%s", name);
	return parse_steps(rest, out);
}
