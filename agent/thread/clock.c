/* SPDX-License-Identifier: MIT */
#include "thread/clock.h"

#include <stdlib.h>

#define READS_AT_ONCE 40
#define PAUSE_NS      100000

static int64_t read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return timespec_ns(t);
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void clock_take_reads(struct clock_reads *out)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (int begin = 0; begin < CLOCK_READS; begin += READS_AT_ONCE) {
		int64_t before;

		if (begin)
			nanosleep(&pause, NULL);
		clock_now_ns(); /* the first one fills the caches again */
		before = clock_now_ns();
		for (int i = begin; i < begin + READS_AT_ONCE; i++) {
			int64_t now = clock_now_ns();
			int64_t ns = now - before;

			out->ns[i] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
			before = now;
		}
	}
}

void clock_cost_of(struct clock_reads *reads, struct clock_cost *out)
{
	uint32_t *cost = reads->ns;
	uint32_t step = 0;

	qsort(cost, CLOCK_READS, sizeof(cost[0]), by_size);
	for (int i = 0; i < CLOCK_READS && !step; i++)
		step = cost[i];
	*out = (struct clock_cost){
		.reads = CLOCK_READS,
		.min_ns = cost[0],
		.p50_ns = cost[CLOCK_READS / 2],
		.p999_ns = cost[CLOCK_READS - 1 - CLOCK_READS / 1000],
		.max_ns = cost[CLOCK_READS - 1],
		.granularity_ns = step,
	};
}

static int64_t offset_ns(clockid_t clock)
{
	/* Two monotonic reads bracket the other; a preemption between them shows. */
	int64_t best = INT64_MAX, offset = 0;

	for (int i = 0; i < 5; i++) {
		int64_t before = clock_now_ns();
		int64_t other = read_ns(clock);
		int64_t width = clock_now_ns() - before;

		if (width < best) {
			best = width;
			offset = other - before - width / 2;
		}
	}
	return offset;
}

void clock_watch_begin(struct clock_watch *watch)
{
	*watch = (struct clock_watch){
		.realtime_offset_ns = offset_ns(CLOCK_REALTIME),
		.boottime_offset_ns = offset_ns(CLOCK_BOOTTIME),
	};
}

void clock_watch_update(struct clock_watch *watch)
{
	int64_t realtime_ns = offset_ns(CLOCK_REALTIME);
	int64_t boottime_ns = offset_ns(CLOCK_BOOTTIME);
	int64_t step_ns = llabs(realtime_ns - watch->realtime_offset_ns);
	int64_t suspended_ns = boottime_ns - watch->boottime_offset_ns;

	if (step_ns > watch->realtime_step_ns)
		watch->realtime_step_ns = step_ns;
	/* Below a millisecond it is only the uncertainty of the reading. */
	if (suspended_ns > 1000000)
		watch->suspended_ns += suspended_ns;

	watch->realtime_offset_ns = realtime_ns;
	watch->boottime_offset_ns = boottime_ns;
}
