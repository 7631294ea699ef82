/* SPDX-License-Identifier: MIT */
/*
 * watchform - reads the records of perf events that watchflow takes: where the fields of
 * a tracepoint are, its `format` says. Pure.
 */
#ifndef WATCHFORM_H
#define WATCHFORM_H

#include <stddef.h>
#include <stdint.h>

#include "watch/timeline.h"

#define WATCHFORM_ARGS 6 /* of a system call */

/* Offsets in the records of a tracepoint, in bytes. */
struct watchform {
	unsigned int prev_prio, prev_state, next_name, next_tid, next_prio;
	unsigned int call, args, result;
	unsigned int flags, waker, wakee, wakee_prio;
	unsigned int word; /* of the kernel: its long, in bytes */
};

/* The `format` of each tracepoint. Returns 0, or -EINVAL where one has no such field. */
int watchform_read_switch(struct watchform *f, const char *format);
int watchform_read_calls(struct watchform *f, const char *enter);
int watchform_read_results(struct watchform *f, const char *leave);
int watchform_read_waking(struct watchform *f, const char *format);

/* What all records say; the fields of the tracepoint follow. */
struct watchform_record {
	uint64_t id;
	int64_t t_ns;
	int tid;
	bool is_switch; /* of the thread to a CPU, or from it */
	bool switched_in;
	const unsigned char *raw;
	size_t raw_bytes;
	uint64_t mode, ip; /* as in struct perfsample, where the event has it; else 0 */
};

/* False for a record of another kind, or that breaks its form. */
bool watchform_parse(const unsigned char *record, struct watchform_record *out);

/* Of the tracepoint, as in its `id`; 0: it is none. */
uint64_t watchform_number(const struct watchform_record *r);

/* Fills in what the tracepoint says; false if the record is too short. */
bool watchform_switch(const struct watchform *f, const struct watchform_record *r,
		      struct timeline_record *out);
bool watchform_waking(const struct watchform *f, const struct watchform_record *r,
		      struct timeline_record *out);

/* The number of the system call, or -1; its arguments on entry. The
 * tracepoint of one call has them at the same places, but half a number. */
long watchform_call(const struct watchform *f, const struct watchform_record *r,
		    uint64_t args[WATCHFORM_ARGS]);

/* What a system call returned, if that is a number of a descriptor; else negative. */
int watchform_result(const struct watchform *f, const struct watchform_record *r);

#endif
