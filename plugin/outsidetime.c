/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "outsidetime.h"

#include "clock.h"
#include "outsidestate.h"

#define UNKNOWN_NS INT64_MIN
#define NS_PER_S   1000000000
/* A timer that is this late at its first hit, or not due yet, was not understood. */
#define LATEST_NS (INT64_C(10) * NS_PER_S)

/* tkr_mono: how the kernel makes ns of its counter. Another CPU may be writing there; what
 * was read before holds until then. */
static struct {
	int64_t last, ns;
	uint64_t mult, shift, xtime;
	bool known;
} keeper;

static void read_keeper(void)
{
	const uint64_t *at = outside.options->time;
	uint64_t keeper_at = at[TIME_KEEPER];

	if (outside_value(at[TIME_CORE], 4) & 1)
		return;
	keeper.last = (int64_t)outside_value(keeper_at + at[TIME_LAST], 8);
	keeper.ns = (int64_t)outside_value(keeper_at + at[TIME_NS], 8);
	keeper.mult = outside_value(keeper_at + at[TIME_MULT], 4);
	keeper.shift = outside_value(keeper_at + at[TIME_SHIFT], 4);
	keeper.xtime = outside_value(keeper_at + at[TIME_XTIME], 8);
	keeper.known = keeper.mult && keeper.shift <= 32;
}

static __int128 divided_up(__int128 a, __int128 b)
{
	return a / b + (a % b > 0);
}

/* When the kernel's clock reaches what a timer waits for, in virtual ns: the inverse of
 * timekeeping_get_ns() of kernel/time/timekeeping.c. */
static int64_t due_ns(uint64_t timer, int64_t *monotonic)
{
	const uint64_t *at = outside.options->time;
	uint64_t clock = outside_value(timer + at[TIME_BASE], 8);
	int64_t expires = (int64_t)outside_value(timer + at[TIME_EXPIRES], 8);
	__int128 counter;

	/* from its own clock, CLOCK_REALTIME or another, to CLOCK_MONOTONIC */
	expires -= (int64_t)outside_value(clock + at[TIME_OFFSET], 8);
	*monotonic = expires;
	if (!at[TIME_KEEPER])
		return UNKNOWN_NS;
	read_keeper();
	if (!keeper.known)
		return UNKNOWN_NS;
	counter = ((__int128)(expires - keeper.ns) << keeper.shift) -
		  (__int128)keeper.xtime;
	counter = divided_up(counter, (__int128)keeper.mult) + keeper.last;
	return (int64_t)divided_up(counter * NS_PER_S, (__int128)at[TIME_HZ]);
}

int64_t outsidetime_due_ns(uint64_t timer)
{
	int64_t monotonic;

	return due_ns(timer, &monotonic);
}

uint64_t outsidetime_task(uint64_t timer)
{
	return outside_value(timer + outside.options->time[TIME_TASK], 8);
}

static bool is_timer(enum options_hook hook, uint64_t timer, int64_t due,
		     unsigned int to_come)
{
	int64_t late_ns = clock_own_ns(to_come) + virtual_clock.raised_ns - due;
	uint64_t function =
		outside_value(timer + outside.options->time[TIME_FUNCTION], 8);

	return outside_in_kernel(timer) && function == outside.options->hook[hook] &&
	       /* a timer with slack may fire with an earlier one, before it is due */
	       (due == UNKNOWN_NS || (late_ns > -LATEST_NS && late_ns < LATEST_NS));
}

void outsidetime_at_timer(enum options_hook hook, unsigned int to_come)
{
	struct outside_cpu *cpu = outside_cpu();
	uint64_t timer = outside_argument(0), task = 0;
	int64_t due, monotonic;

	cpu->timer.how = 0;
	if (hook == HOOK_SLEEPER) {
		task = outsidetime_task(timer);
		if (!outside_own(task) && !outside_is_new(hook))
			return;
	}
	due = due_ns(timer, &monotonic);
	if (outside_is_new(hook) &&
	    !outside_check(hook, is_timer(hook, timer, due, to_come)))
		return;
	cpu->timer = (struct outside_timer){
		.how = hook == HOOK_SLEEPER   ? 1
		       : hook == HOOK_TIMERFD ? 2
					      : 3,
		.due_ns = due,
		.monotonic_ns = monotonic,
		.task = task,
		.stack = outside_stack(),
		.current = cpu->current,
	};
}

void outsidetime_at_wake(uint64_t task, uint32_t thread, unsigned int to_come)
{
	struct outside_cpu *cpu = outside_cpu();
	const struct outside_timer *timer = &cpu->timer;

	if (!timer->how || timer->current != cpu->current)
		return;
	if (timer->task && timer->task != task)
		return;
	if (outside_stack() >= timer->stack) {
		cpu->timer.how = 0;
		return;
	}
	outside_put_with(OUTSIDE_RELEASE, to_come, thread, timer->how,
			 (uint64_t)timer->due_ns, (uint64_t)timer->monotonic_ns);
	if (timer->task)
		cpu->timer.how = 0;
}
