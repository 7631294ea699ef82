/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/resource.h>

#include "tests/check.h"
#include "thread/clock.h"

static void nanoseconds_survive_the_way_through_a_timespec(void)
{
	static const int64_t times_ns[] = { 0,
					    1,
					    NS_PER_S - 1,
					    NS_PER_S,
					    INT64_C(5000000000),
					    (INT64_C(1) << 32) * NS_PER_S + 999999999 };

	for (size_t i = 0; i < sizeof(times_ns) / sizeof(times_ns[0]); i++) {
		struct timespec t = ns_timespec(times_ns[i]);

		CHECK(t.tv_nsec >= 0 && t.tv_nsec < NS_PER_S);
		CHECK(timespec_ns(t) == times_ns[i]);
	}
}

static void a_sleep_to_the_past_returns_at_once(void)
{
	struct timespec past = { .tv_sec = 0 };

	CHECK(clock_sleep_until(&past) == 0);
	past = ns_timespec(clock_now_ns());
	CHECK(clock_sleep_until(&past) == 0);
}

static void a_sleep_ends_no_earlier_than_asked(void)
{
	int64_t until_ns = clock_now_ns() + 1000000;
	struct timespec until = ns_timespec(until_ns);

	CHECK(clock_sleep_until(&until) == 0);
	CHECK(clock_now_ns() >= until_ns);
}

static void a_time_that_is_none_is_an_error(void)
{
	const struct timespec bad = { .tv_nsec = 1000000000 };

	CHECK(clock_sleep_until(&bad) == EINVAL);
}

static void costs_are_in_order(void)
{
	static struct clock_reads reads;
	struct clock_cost cost;

	clock_take_reads(&reads);
	clock_cost_of(&reads, &cost);
	CHECK(cost.reads > 0);
	CHECK(0 <= cost.min_ns && cost.min_ns <= cost.p50_ns);
	CHECK(cost.p50_ns <= cost.p999_ns && cost.p999_ns <= cost.max_ns);
	CHECK(0 < cost.granularity_ns && cost.granularity_ns <= cost.max_ns);
}

/* It is done at a real-time priority: others must get the CPU between. */
static void the_readings_of_a_cost_are_made_in_many_pieces(void)
{
	static struct clock_reads reads;
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	clock_take_reads(&reads);
	getrusage(RUSAGE_THREAD, &after);
	CHECK(after.ru_nvcsw - before.ru_nvcsw >= CLOCK_READS / 100 - 1);
}

static void a_watch_on_unchanged_clocks_sees_nothing(void)
{
	struct clock_watch watch;

	clock_watch_begin(&watch);
	for (int i = 0; i < 100; i++)
		clock_watch_update(&watch);

	CHECK(watch.suspended_ns == 0);
	/* time synchronisation may slew the wall clock, and reading takes time */
	CHECK(watch.realtime_step_ns < 10000000);
}

static void a_step_and_a_suspend_are_seen_with_their_size(void)
{
	struct clock_watch watch;

	clock_watch_begin(&watch);
	watch.realtime_offset_ns -= 3600 * NS_PER_S;
	watch.boottime_offset_ns -= 60 * NS_PER_S;
	clock_watch_update(&watch);

	CHECK(watch.realtime_step_ns > 3599 * NS_PER_S);
	CHECK(watch.realtime_step_ns < 3601 * NS_PER_S);
	CHECK(watch.suspended_ns > 59 * NS_PER_S && watch.suspended_ns < 61 * NS_PER_S);

	clock_watch_update(&watch);
	CHECK(watch.suspended_ns < 61 * NS_PER_S);
}

int main(void)
{
	nanoseconds_survive_the_way_through_a_timespec();
	a_sleep_to_the_past_returns_at_once();
	a_sleep_ends_no_earlier_than_asked();
	a_time_that_is_none_is_an_error();
	costs_are_in_order();
	the_readings_of_a_cost_are_made_in_many_pieces();
	a_watch_on_unchanged_clocks_sees_nothing();
	a_step_and_a_suspend_are_seen_with_their_size();
	return 0;
}
