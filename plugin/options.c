/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RING    (UINT64_C(1) << 28)       /* 4 GiB */
#define MAX_RECORDS ((UINT64_C(1) << 24) - 3) /* 512 MiB: programs/outside/file.py */
/* 128 MiB with the header: verbs/test/codefile.py */
#define MAX_CODE_UNITS ((UINT64_C(1) << 23) - 1)

static bool parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, 0);
	return !errno && !*end && *out >= low && *out <= high;
}

static bool parse_window(const char *text, struct options *o)
{
	struct window *w = &o->window[o->windows];
	char first[24];
	size_t length = strcspn(text, ":");

	if (!text[length] || length >= sizeof(first) || o->windows == OPTIONS_WINDOWS)
		return false;
	memcpy(first, text, length);
	first[length] = '\0';
	if (!parse_number(first, 0, INT64_MAX, &w->first) ||
	    !parse_number(text + length + 1, w->first, INT64_MAX, &w->last))
		return false;
	if (o->windows && w->first <= o->window[o->windows - 1].last)
		return false;
	o->windows++;
	return true;
}

static bool parse_place(const char *text, struct place *p)
{
	size_t length = strcspn(text, "@");
	char *end;

	if (!length || length >= sizeof(p->name))
		return false;
	memcpy(p->name, text, length);
	p->name[length] = '\0';
	p->bytes = 8;
	p->in_memory = text[length] == '@';
	if (!p->in_memory)
		return true;
	errno = 0;
	p->offset = strtoll(text + length + 1, &end, 0);
	if (errno || end == text + length + 1)
		return false;
	if (strcmp(end, ":4") == 0)
		p->bytes = 4;
	return !*end || p->bytes == 4;
}

/* Exactly so many numbers, with colons between them. */
static bool parse_numbers(const char *text, unsigned int count, uint64_t *out)
{
	char *end;

	for (unsigned int i = 0; i < count; i++) {
		if (*text < '0' || *text > '9')
			return false;
		errno = 0;
		out[i] = strtoull(text, &end, 0);
		if (errno || *end != (i + 1 < count ? ':' : '\0'))
			return false;
		text = end + 1;
	}
	return true;
}

static bool parse_uses(const char *text, struct options *o)
{
	char *end;

	for (o->uses = 0; *text; o->uses++) {
		struct use *use = &o->use[o->uses];

		if (o->uses == OPTIONS_USES || *text < '0' || *text > '9')
			return false;
		errno = 0;
		use->offset = strtoull(text, &end, 0);
		if (errno || *end != '@' || use->offset >= USES_PAGE || end[1] < '0' ||
		    end[1] > '9')
			return false;
		use->sum = strtoull(end + 1, &end, 0);
		if (errno || (*end && (*end != ':' || !end[1])))
			return false;
		text = end + (*end == ':');
	}
	return o->uses;
}

static bool parse_stacked(const char *text, struct options *o)
{
	uint64_t time[2];

	if (!parse_numbers(text, 2, time) || time[0] > time[1])
		return false;
	o->stacked = (struct window){ time[0], time[1] };
	return true;
}

static struct phase phase[OPTIONS_PHASES];

static bool parse_phase(const char *text, struct options *o)
{
	uint64_t number[4];

	if (o->phases == OPTIONS_PHASES || !parse_numbers(text, 4, number) ||
	    !number[0] || !number[1] || number[2] > OPTIONS_PERIOD_NS ||
	    number[3] >= number[2])
		return false;
	phase[o->phases++] =
		(struct phase){ number[0], number[1], number[2], number[3] };
	return true;
}

/* A number of 64 bits, and where in the options it is kept. */
struct number {
	const char *name;
	uint64_t least;
	uint64_t most;
	size_t at;
};

#define AT(field) offsetof(struct options, field)

static const struct number numbers[] = {
	{ "quantum", 0, INT64_MAX, AT(quantum) },
	{ "shift", 0, 10, AT(shift) },
	{ "worst", 1, OPTIONS_WORST, AT(worst) },
	{ "ring", 1024, MAX_RING, AT(ring) },
	{ "room", 1, MAX_RING, AT(room) },
	{ "switched", 1, UINT64_MAX, AT(switched) },
	{ "first-task", 1, UINT64_MAX, AT(first_task) },
	{ "wake", 1, UINT64_MAX, AT(wake) },
	{ "rename", 1, UINT64_MAX, AT(rename) },
	{ "schedule", 1, UINT64_MAX, AT(schedule) },
	{ "idle", 1, UINT64_MAX, AT(idle) },
	{ "sleep", 1, UINT64_MAX, AT(sleep) },
	{ "exit", 1, UINT64_MAX, AT(exit) },
	{ "due", 0, 63, AT(due) },
	{ "most", 1, MAX_RECORDS, AT(most) },
	{ "stacks", 1, OPTIONS_STACKS, AT(stacks) },
	{ "stack", 0, OPTIONS_STACK, AT(stack) },
	{ "code-units", 1, MAX_CODE_UNITS, AT(code_units) },
};

static bool parse_one(const char *name, const char *value, struct options *o)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const struct number *one = &numbers[i];

		if (strcmp(name, one->name) == 0)
			return parse_number(value, one->least, one->most,
					    (uint64_t *)((char *)o + one->at));
	}
	if (strcmp(name, "window") == 0)
		return parse_window(value, o);
	if (strcmp(name, "task") == 0)
		return parse_place(value, &o->task);
	if (strcmp(name, "preempt") == 0)
		return parse_place(value, &o->preempt);
	if (strcmp(name, "hooks") == 0)
		return parse_numbers(value, OPTIONS_HOOKS, o->hook);
	if (strcmp(name, "fields") == 0)
		return parse_numbers(value, OPTIONS_FIELDS, o->field);
	if (strcmp(name, "time") == 0)
		return parse_numbers(value, OPTIONS_TIMES, o->time) && o->time[TIME_HZ];
	if (strcmp(name, "parts") == 0)
		return o->has_parts = parse_numbers(value, OPTIONS_PLACES, o->parts);
	if (strcmp(name, "phase") == 0)
		return parse_phase(value, o);
	if (strcmp(name, "use") == 0)
		return parse_uses(value, o);
	if (strcmp(name, "stacked") == 0)
		return parse_stacked(value, o);
	if (strcmp(name, "program") == 0)
		o->program = value;
	else if (strcmp(name, "code") == 0)
		o->code = value;
	else if (strcmp(name, "summary") == 0)
		o->summary = value;
	else if (strcmp(name, "progress") == 0)
		o->progress = value;
	else if (strcmp(name, "out") == 0)
		o->out = value;
	else
		return false;
	return *value;
}

const char *options_parse(int argc, char **argv, struct options *out)
{
	*out = (struct options){ .phase = phase,
				 .worst = 16,
				 .ring = UINT64_C(1) << 22,
				 .room = UINT64_C(1) << 23,
				 .most = MAX_RECORDS,
				 .stack = 8192,
				 .code_units = MAX_CODE_UNITS,
				 .stacked = { 0, UINT64_MAX } };

	for (int i = 0; i < argc; i++) {
		char name[16];
		const char *equals = strchr(argv[i], '=');
		size_t length = equals ? (size_t)(equals - argv[i]) : 0;

		if (!length || length >= sizeof(name))
			return argv[i];
		memcpy(name, argv[i], length);
		name[length] = '\0';
		if (!parse_one(name, equals + 1, out))
			return argv[i];
	}
	if ((out->windows || out->task.name[0] || out->preempt.name[0] ||
	     out->switched || out->wake || out->rename) &&
	    !out->out && !out->program && !out->has_parts)
		return "out=FILE is missing";
	if (out->schedule && !(out->idle && out->sleep && out->exit &&
			       out->task.name[0] && out->preempt.name[0]))
		return "schedule=ADDRESS needs idle, sleep, exit, task and preempt";
	if ((out->program || out->has_parts) &&
	    !(out->task.name[0] && out->hook[HOOK_SWITCHED] && out->field[FIELD_COMM] &&
	      out->time[TIME_HZ]))
		return "program=FILE and parts=LIST need task, hooks, fields and time";
	if (out->program && out->has_parts)
		return "parts=LIST is not for program=FILE";
	if (out->code && (!out->program || out->out))
		return "code=FILE needs program=FILE, and is not for out=FILE";
	if (out->phases &&
	    !(out->program && out->hook[HOOK_NEW] && out->hook[HOOK_CALL]))
		return "phase=START:N:PERIOD:NS needs program=FILE and its hooks";
	return NULL;
}
