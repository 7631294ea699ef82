/* SPDX-License-Identifier: MIT */
/*
 * traceevents - the closed list of events that explain a wake-up, and which of them this
 * kernel has.
 */
#ifndef TRACEEVENTS_H
#define TRACEEVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define TRACEEVENTS_MAX      80
#define TRACEEVENTS_LEFT_OUT 1

/* Whose events are wanted; what is not about our threads would cost more than it says. */
enum trace_filter {
	TRACE_ALL,
	TRACE_OURS, /* those that happen to our threads */
};

/* Whose wake-ups are to be explained. */
enum trace_use {
	TRACE_SAMPLERS, /* our own: they measure what the recording costs */
	TRACE_CYCLES,   /* another program's, which is to run as if nobody looked */
};

struct trace_event {
	const char *system;
	const char *name;
	enum trace_filter filter;
};

extern const struct trace_event trace_events[];
unsigned int traceevents_count(void);

/* Per event of trace_events: 0 when it is on, TRACEEVENTS_LEFT_OUT when it is not wanted,
 * else -errno (-ENOENT: not in this kernel). */
struct trace_enabled {
	int err[TRACEEVENTS_MAX];
	unsigned int on;
	int stack_err; /* 0 if the stack that a wake-up of ours interrupts is recorded */
};

/* Switches on, in the instance, what there is; filtered ones stay off until
 * traceevents_filter() names the threads. Returns how many the kernel has. */
unsigned int traceevents_enable(const char *instance, enum trace_use use,
				struct trace_enabled *out);

/* Whether an event of the system is on. */
bool traceevents_have(const struct trace_enabled *events, const char *system);

/* Switches the filtered events on for these threads, and has the kernel record its
 * stack when one of them is woken: the timer's interrupt wakes them, so that it is the
 * stack of what they had to wait for. With TRACE_CYCLES not that of an idle CPU: it
 * takes longer than all else that is recorded of a wake-up, and is always the same. */
void traceevents_filter(const char *instance, enum trace_use use, const int *tid,
			unsigned int tids, struct trace_enabled *out);

#endif
