/* SPDX-License-Identifier: MIT */
/*
 * clock - CLOCK_MONOTONIC in ns, what reading it costs, and whether clocks jumped.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "thread/rawcall.h"

#define NS_PER_S INT64_C(1000000000)

#ifdef SYS_clock_nanosleep_time64
#define CLOCK_SYS_SLEEP SYS_clock_nanosleep_time64
#else
#define CLOCK_SYS_SLEEP SYS_clock_nanosleep
#endif

_Static_assert(sizeof(time_t) == 8, "the 64-bit-time system call needs 64-bit time_t");

static inline int64_t timespec_ns(struct timespec t)
{
	return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static inline struct timespec ns_timespec(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

static inline int64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return timespec_ns(now);
}

/*
 * Sleeps until the time on CLOCK_MONOTONIC. Returns 0 or EINTR. A raw system call: on
 * 32-bit machines the one with 64-bit time, so that libc cannot fall back to another.
 */
static inline int clock_sleep_until(const struct timespec *expiry)
{
	return (int)-rawcall4(CLOCK_SYS_SLEEP, CLOCK_MONOTONIC, TIMER_ABSTIME, expiry,
			      NULL);
}

/* Of back-to-back reads; granularity is the smallest step between two readings. */
struct clock_cost {
	int64_t reads;
	int64_t min_ns;
	int64_t p50_ns;
	int64_t p999_ns;
	int64_t max_ns;
	int64_t granularity_ns;
};

#define CLOCK_READS 4000

struct clock_reads {
	uint32_t ns[CLOCK_READS];
};

/* Reads the clock, some microseconds at a time, and sleeps between: a thread of a lower
 * priority waits no longer than for a wake-up. */
void clock_take_reads(struct clock_reads *out);

/* Sorts them: milliseconds on a slow machine, for an ordinary thread. */
void clock_cost_of(struct clock_reads *reads, struct clock_cost *out);

/* Detects steps of the wall clock and suspends; call once a second. */
struct clock_watch {
	int64_t realtime_offset_ns;
	int64_t boottime_offset_ns;
	int64_t realtime_step_ns; /* largest step seen */
	int64_t suspended_ns;
};

void clock_watch_begin(struct clock_watch *watch);
void clock_watch_update(struct clock_watch *watch);

#endif
