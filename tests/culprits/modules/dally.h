/* SPDX-License-Identifier: GPL-2.0 */
/* Time spent by a shared helper, and turns: one culprit in each. */
#ifndef DALLY_H
#define DALLY_H

#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>

/* Spends `us` in whatever context the caller is in. */
void dally(unsigned int us);

struct turn {
	const char *name;
	/* Called on the measured CPU, in a thread that may sleep. */
	void (*plant)(void);
};

/* Sleeps until a time of CLOCK_MONOTONIC. */
static inline void sleep_until(u64 at_ns)
{
	ktime_t at = ns_to_ktime(at_ns);

	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_hrtimeout_range(&at, 0, HRTIMER_MODE_ABS);
}

/* A turn begins first_ms from now, and every every_ms behind that. */
static inline void take_turns(const struct turn *turns, unsigned int number,
			      u64 first_ms, u64 every_ms)
{
	const u64 begin_ns = ktime_get_mono_fast_ns() + first_ms * NSEC_PER_MSEC;

	for (unsigned int i = 0; i < number && !kthread_should_stop(); i++) {
		sleep_until(begin_ns + i * every_ms * NSEC_PER_MSEC);
		turns[i].plant();
	}
	while (!kthread_should_stop())
		msleep(10);
}

#endif
