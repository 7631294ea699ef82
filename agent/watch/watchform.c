/* SPDX-License-Identifier: MIT */
#include "watch/watchform.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#define FROM_NMI        0x40 /* common_flags: include/linux/trace_events.h */
#define FROM_INTERRUPT  0x08
#define FROM_SOFTIRQ    0x10
#define STILL_RUNNABLE  0x100 /* preempted: TASK_REPORT_MAX */
#define UNINTERRUPTIBLE 0x2   /* of prev_state: include/linux/sched.h */

static int find(const char *format, const char *name, unsigned int *at,
		unsigned int *size)
{
	char wanted[32];
	const char *line;

	/* "field:TYPE NAME;" or "field:TYPE NAME[...];", then offset and size */
	for (const char *end = ";["; *end; end++) {
		snprintf(wanted, sizeof(wanted), " %s%c", name, *end);
		line = strstr(format, wanted);
		line = line ? strstr(line, "offset:") : NULL;
		if (line && sscanf(line, "offset:%u; size:%u", at, size) == 2)
			return 0;
	}
	return -EINVAL;
}

static int find_int(const char *format, const char *name, unsigned int *at)
{
	unsigned int size;
	int err = find(format, name, at, &size);

	return !err && size != sizeof(int32_t) ? -EINVAL : err;
}

int watchform_read_switch(struct watchform *f, const char *format)
{
	unsigned int size;

	if (find(format, "next_comm", &f->next_name, &size) || size != TIMELINE_NAME ||
	    find(format, "prev_state", &f->prev_state, &f->word) ||
	    find_int(format, "prev_prio", &f->prev_prio) ||
	    find_int(format, "next_pid", &f->next_tid) ||
	    find_int(format, "next_prio", &f->next_prio))
		return -EINVAL;
	return f->word == 4 || f->word == 8 ? 0 : -EINVAL;
}

int watchform_read_calls(struct watchform *f, const char *enter)
{
	unsigned int size;

	if (find(enter, "id", &f->call, &size) || size != f->word ||
	    find(enter, "args", &f->args, &size) || size < WATCHFORM_ARGS * f->word)
		return -EINVAL;
	return 0;
}

int watchform_read_results(struct watchform *f, const char *leave)
{
	unsigned int size;

	return find(leave, "ret", &f->result, &size) || size != f->word ? -EINVAL : 0;
}

int watchform_read_waking(struct watchform *f, const char *format)
{
	unsigned int size;

	if (find(format, "common_flags", &f->flags, &size) || size != 1 ||
	    find_int(format, "common_pid", &f->waker) ||
	    find_int(format, "pid", &f->wakee) ||
	    find_int(format, "prio", &f->wakee_prio))
		return -EINVAL;
	return 0;
}

static uint64_t number(const unsigned char *at, size_t bytes)
{
	uint64_t wide = 0;
	uint32_t narrow;

	if (bytes == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

/* In the order of perfevent_open_flow(), which the kernel's header gives. */
bool watchform_parse(const unsigned char *record, struct watchform_record *out)
{
	const unsigned char *body = record + sizeof(struct perf_event_header);
	struct perf_event_header header;
	size_t bytes;

	memcpy(&header, record, sizeof(header));
	if (header.size < sizeof(header) + 24)
		return false;
	bytes = header.size - sizeof(header);
	*out = (struct watchform_record){ .raw = NULL };
	if (header.type == PERF_RECORD_SWITCH) {
		out->is_switch = true;
		out->switched_in = !(header.misc & PERF_RECORD_MISC_SWITCH_OUT);
		out->tid = (int)number(body + 4, 4);
		out->t_ns = (int64_t)number(body + 8, 8);
		return true;
	}
	if (header.type != PERF_RECORD_SAMPLE || bytes < 28)
		return false;
	out->id = number(body, 8);
	out->tid = (int)number(body + 12, 4);
	out->t_ns = (int64_t)number(body + 16, 8);
	out->raw_bytes = (size_t)number(body + 24, 4);
	out->raw = body + 28;
	if (out->raw_bytes > bytes - 28)
		return false;
	if (bytes - 28 - out->raw_bytes >= 16) {
		out->mode = number(out->raw + out->raw_bytes, 8);
		out->ip = number(out->raw + out->raw_bytes + 8, 8);
	}
	return true;
}

uint64_t watchform_number(const struct watchform_record *r)
{
	uint16_t type = 0;

	if (r->raw && r->raw_bytes >= sizeof(type))
		memcpy(&type, r->raw, sizeof(type));
	return type;
}

static bool has(const struct watchform_record *r, unsigned int at, size_t bytes)
{
	return r->raw_bytes >= bytes && at <= r->raw_bytes - bytes;
}

static int int_at(const struct watchform_record *r, unsigned int at)
{
	return (int)(int32_t)number(r->raw + at, 4);
}

bool watchform_switch(const struct watchform *f, const struct watchform_record *r,
		      struct timeline_record *out)
{
	uint64_t state;

	if (!has(r, f->prev_state, f->word) || !has(r, f->prev_prio, 4) ||
	    !has(r, f->next_name, TIMELINE_NAME) || !has(r, f->next_tid, 4) ||
	    !has(r, f->next_prio, 4))
		return false;
	state = number(r->raw + f->prev_state, f->word);
	*out = (struct timeline_record){
		.t_ns = r->t_ns,
		.tid = r->tid,
		.what = TIMELINE_OUT,
		.runnable = state == 0 || state == STILL_RUNNABLE,
		.held = state & UNINTERRUPTIBLE,
		.priority = int_at(r, f->prev_prio),
		.other = { .tid = int_at(r, f->next_tid),
			   .priority = int_at(r, f->next_prio) },
	};
	memcpy(out->other.name, r->raw + f->next_name, TIMELINE_NAME - 1);
	return true;
}

bool watchform_waking(const struct watchform *f, const struct watchform_record *r,
		      struct timeline_record *out)
{
	unsigned int flags;

	if (!has(r, f->flags, 1) || !has(r, f->waker, 4) || !has(r, f->wakee, 4) ||
	    !has(r, f->wakee_prio, 4))
		return false;
	flags = r->raw[f->flags];
	*out = (struct timeline_record){
		.t_ns = r->t_ns,
		.tid = int_at(r, f->wakee),
		.what = TIMELINE_WAKE,
		.priority = int_at(r, f->wakee_prio),
		.other = { .tid = int_at(r, f->waker) },
		.context = flags & (FROM_INTERRUPT | FROM_NMI) ? IN_INTERRUPT
			   : flags & FROM_SOFTIRQ              ? IN_SOFTIRQ
							       : IN_THREAD,
	};
	return true;
}

long watchform_call(const struct watchform *f, const struct watchform_record *r,
		    uint64_t args[WATCHFORM_ARGS])
{
	if (!has(r, f->call, f->word) ||
	    !has(r, f->args, WATCHFORM_ARGS * (size_t)f->word))
		return -1;
	for (unsigned int i = 0; i < WATCHFORM_ARGS; i++)
		args[i] = number(r->raw + f->args + i * f->word, f->word);
	/* half a number of the tracepoint of one call */
	return int_at(r, f->call);
}

int watchform_result(const struct watchform *f, const struct watchform_record *r)
{
	return has(r, f->result, f->word) ? int_at(r, f->result) : -1;
}
