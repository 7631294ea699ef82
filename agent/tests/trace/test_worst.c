/* SPDX-License-Identifier: MIT */
#include "tests/check.h"
#include "trace/worst.h"

static struct worst w;

static void offer(uint64_t seq, int64_t late_ns)
{
	const int64_t expiry_ns = (int64_t)seq * 1000;

	worst_offer(&w, (struct wakeup){ seq, expiry_ns, expiry_ns + late_ns });
}

static void the_worst_stands_first(void)
{
	worst_init(&w, 3);
	offer(1, 10);
	offer(2, 30);
	offer(3, 20);

	CHECK(w.count == 3);
	CHECK(w.entry[0].seq == 2 && w.entry[1].seq == 3 && w.entry[2].seq == 1);
}

static void a_full_list_drops_its_least(void)
{
	worst_init(&w, 2);
	offer(1, 10);
	offer(2, 20);
	offer(3, 15);

	CHECK(w.count == 2);
	CHECK(w.entry[0].seq == 2 && w.entry[1].seq == 3);
}

static void of_equal_ones_the_earlier_stays(void)
{
	worst_init(&w, 2);
	offer(1, 10);
	offer(2, 10);
	offer(3, 10);
	CHECK(w.entry[0].seq == 1 && w.entry[1].seq == 2);

	offer(4, 20);
	CHECK(w.entry[0].seq == 4 && w.entry[1].seq == 1);
}

static void the_bar_rises_only_when_the_list_is_full(void)
{
	worst_init(&w, 2);
	CHECK(w.bar_ns == -1);
	offer(1, 50);
	CHECK(w.bar_ns == -1);
	offer(2, 10);
	CHECK(w.bar_ns == 10);
	offer(3, 20);
	CHECK(w.bar_ns == 20);
	offer(4, 20);
	CHECK(w.bar_ns == 20);
}

static void early_wakeups_are_not_among_the_worst(void)
{
	worst_init(&w, 2);
	offer(1, -1);
	CHECK(w.count == 0);
	offer(2, 0);
	CHECK(w.count == 1);
}

static void with_limit_0_nothing_is_kept(void)
{
	worst_init(&w, 0);
	CHECK(w.bar_ns == INT64_MAX);
	offer(1, 1000000);
	CHECK(w.count == 0);
}

static void a_limit_beyond_the_room_is_cut(void)
{
	worst_init(&w, 1000);
	for (uint64_t seq = 1; seq <= 1000; seq++)
		offer(seq, (int64_t)(seq * 7919 % 1000));

	CHECK(w.count == WORST_MAX);
	CHECK(w.bar_ns == 1000 - WORST_MAX);
}

static void sixty_four_of_many_are_the_sixty_four_worst(void)
{
	/* 7919 is prime to 5000: each latency from 0 to 4999 comes once */
	worst_init(&w, 64);
	for (uint64_t seq = 1; seq <= 5000; seq++)
		offer(seq, (int64_t)(seq * 7919 % 5000));

	for (int i = 0; i < 64; i++)
		CHECK(w.entry[i].wake_ns - w.entry[i].expiry_ns == 4999 - i);
}

int main(void)
{
	the_worst_stands_first();
	a_full_list_drops_its_least();
	of_equal_ones_the_earlier_stays();
	the_bar_rises_only_when_the_list_is_full();
	early_wakeups_are_not_among_the_worst();
	with_limit_0_nothing_is_kept();
	a_limit_beyond_the_room_is_cut();
	sixty_four_of_many_are_the_sixty_four_worst();
	return 0;
}
