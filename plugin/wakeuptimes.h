/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wakeuptimes - when a wake-up came by each place, and how long its parts took. */
#ifndef WAKEUPTIMES_H
#define WAKEUPTIMES_H

#include <stdbool.h>
#include <stdint.h>

/* In this order. Of an event, the first ends where it wakes the thread. */
enum part {
	PART_BEFORE,     /* until the timer's interrupt is handled */
	PART_INTERRUPT,  /* until the CPU's interrupt handlers are done */
	PART_PREEMPTION, /* until it calls the scheduler */
	PART_SCHEDULER,  /* until it has switched to the thread */
	PART_RETURN,     /* until the thread has read the clock */
	PARTS
};

/* A time that is not known; none is before the board was switched on. */
#define NEVER INT64_C(-1)

/* A wake-up, and when it came by each place: the CPU's own time. */
struct wakeup_times {
	bool by_timer;
	int64_t begun_ns; /* the guest's clock, of which the latency is a difference */
	int64_t entered_ns, woken_ns, quit_ns, scheduled_ns, switched_ns;
	int64_t read_ns;    /* NEVER: it has not ended */
	int64_t latency_ns; /* by the guest's clock, if it has */
};

/* Of one that has ended: its parts, which add up to its latency. */
void wakeuptimes_parts(const struct wakeup_times *times, int64_t took_ns[PARTS]);

#endif
