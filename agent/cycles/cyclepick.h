/* SPDX-License-Identifier: MIT */
/*
 * cyclepick - of a raw trace page, the events that show when watched threads sleep, are
 * woken and run, and which timers wake them. Pure.
 *
 * Where the fields lie is read from the kernel's own formats.
 */
#ifndef CYCLEPICK_H
#define CYCLEPICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/tracepage.h"

#define CYCLEPICK_MAX_TID (1 << 22) /* PID_MAX_LIMIT of the kernel */

enum pick_kind {
	PICK_LOST,     /* events of this CPU from at_ns to when_ns */
	PICK_WAKING,   /* tid is woken, by the thread `by` */
	PICK_OUT,      /* tid leaves its CPU; runnable: it was preempted */
	PICK_IN,       /* tid gets the CPU */
	PICK_ARMED,    /* a timer is set to when_ns, of its clock; by tid, if not 0 */
	PICK_EXPIRING, /* the callback of a timer begins: when_ns is now, of its clock */
	PICK_EXPIRED,  /* and ends */
	PICK_WAITS,   /* tid calls what waits for one of several things: cyclewaits.h */
	PICK_GOES_ON, /* and returns from it */
};

struct pick {
	int64_t at_ns;
	uint64_t seq; /* events of equal times stay as they came */
	enum pick_kind kind;
	unsigned int cpu;
	int tid, by;
	uint64_t timer, function; /* function: the callback of an armed timer */
	uint64_t wait;            /* the call, and its first argument */
	int64_t when_ns;
	bool runnable, relative;
};

struct pick_field {
	unsigned int at, size; /* size 0: the kernel has none */
};

struct cyclepick {
	/* of sched_switch, sched_waking, hrtimer_start, hrtimer_expire_entry and _exit,
	 * sys_enter and sys_exit; 0: the kernel has none */
	unsigned int id_switch, id_waking, id_start, id_entry, id_exit, id_call,
		id_return;
	struct pick_field common_pid, common_flags, prev_pid, prev_state, next_pid,
		waking_pid;
	struct pick_field start_timer, function, softexpires, mode, entry_timer, now;
	struct pick_field call, argument;
	uint8_t watched[CYCLEPICK_MAX_TID / 8];
	uint64_t seq;
};

/* Takes up a format; `name` is that of the event. Unknown names are ignored. */
void cyclepick_format(struct cyclepick *p, const char *name, const char *text);

/* Whether sleeping and running can be seen: the kernel has sched_switch and _waking. */
bool cyclepick_works(const struct cyclepick *p);

/* True if the thread was not watched before. */
bool cyclepick_watch(struct cyclepick *p, int tid);

typedef void cyclepick_take(void *context, const struct pick *pick);

/* Gives the events of a page that matter, in their order. */
void cyclepick_page(struct cyclepick *p, const struct tracepage_layout *layout,
		    const unsigned char *page, unsigned int cpu, cyclepick_take *take,
		    void *context);

#endif
