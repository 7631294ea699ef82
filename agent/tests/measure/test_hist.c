/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <string.h>

#include "measure/hist.h"
#include "tests/check.h"

static struct hist h;

/* xorshift64: the same values in every run */
static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static bool wide_is(const struct wide *w, uint64_t high, uint64_t low)
{
	return w->high == high && w->low == low;
}

static void each_bucket_begins_where_the_one_before_ends(void)
{
	CHECK(hist_bucket_low_ns(0) == 0);
	for (unsigned int b = 1; b < HIST_BUCKETS; b++) {
		uint64_t low = (uint64_t)hist_bucket_low_ns(b);

		CHECK(hist_bucket(low) == b);
		CHECK(hist_bucket(low - 1) == b - 1);
	}
	CHECK(hist_bucket((UINT64_C(1) << HIST_MAX_BITS) - 1) == HIST_BUCKETS - 1);
}

static void random_values_lie_in_their_buckets(void)
{
	for (int i = 0; i < 1000000; i++) {
		uint64_t ns = next_random() >> (30 + next_random() % 34);
		unsigned int b = hist_bucket(ns);

		CHECK(b < HIST_BUCKETS);
		CHECK((uint64_t)hist_bucket_low_ns(b) <= ns);
		CHECK(b == HIST_BUCKETS - 1 ||
		      ns < (uint64_t)hist_bucket_low_ns(b + 1));
	}
}

static void a_bucket_spans_at_most_a_thousandth_of_its_values(void)
{
	for (unsigned int b = 0; b + 1 < HIST_BUCKETS; b++) {
		int64_t low = hist_bucket_low_ns(b);
		int64_t width = hist_bucket_low_ns(b + 1) - low;

		CHECK(width == 1 || width * 1000 <= low);
	}
}

static void values_without_a_bucket_are_counted(void)
{
	hist_init(&h);
	hist_add(&h, -1);
	hist_add(&h, INT64_MIN);
	hist_add(&h, (INT64_C(1) << HIST_MAX_BITS) - 1);
	hist_add(&h, INT64_C(1) << HIST_MAX_BITS);
	hist_add(&h, INT64_MAX);

	CHECK(h.early == 2);
	CHECK(h.overflow == 2);
	CHECK(h.count[HIST_BUCKETS - 1] == 1);
	CHECK(h.min_ns == (INT64_C(1) << HIST_MAX_BITS) - 1);
	CHECK(h.max_ns == INT64_MAX);
}

static void early_wakeups_are_in_no_sum_and_no_minimum(void)
{
	hist_init(&h);
	hist_add(&h, -5);

	CHECK(h.early == 1);
	CHECK(h.min_ns == INT64_MAX);
	CHECK(h.max_ns == INT64_MIN);
	CHECK(wide_is(&h.sum_ns, 0, 0));
	CHECK(wide_is(&h.sum_sq_ns2, 0, 0));
}

static void a_used_histogram_is_empty_after_init(void)
{
	static const struct hist zero;

	hist_init(&h);
	hist_add(&h, 7);
	hist_init(&h);

	CHECK(memcmp(h.count, zero.count, sizeof(h.count)) == 0);
	CHECK(wide_is(&h.sum_ns, 0, 0));
}

static void squares_are_exact_where_they_leave_one_word(void)
{
	static const struct {
		int64_t ns;
		uint64_t high, low;
	} known[] = {
		/* (2^32 - 1)^2 = 2^64 - 2^33 + 1 */
		{ (INT64_C(1) << 32) - 1, 0, 0xfffffffe00000001 },
		{ INT64_C(1) << 32, 1, 0 },
		/* (2^32 + 1)^2 = 2^64 + 2^33 + 1 */
		{ (INT64_C(1) << 32) + 1, 1, 0x200000001 },
		/* (2^34 - 1)^2 = 2^68 - 2^35 + 1 */
		{ (INT64_C(1) << 34) - 1, 15, 0xfffffff800000001 },
		{ INT64_C(1) << 62, UINT64_C(1) << 60, 0 },
		/* (2^63 - 1)^2 = 2^126 - 2^64 + 1 */
		{ INT64_MAX, (UINT64_C(1) << 62) - 1, 1 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		hist_init(&h);
		hist_add(&h, known[i].ns);
		CHECK(wide_is(&h.sum_ns, 0, (uint64_t)known[i].ns));
		CHECK(wide_is(&h.sum_sq_ns2, known[i].high, known[i].low));
	}
}

static void sums_carry_into_the_high_word(void)
{
	hist_init(&h);
	for (int i = 0; i < 5; i++)
		hist_add(&h, INT64_C(1) << 62);

	/* 5 * 2^62 = 2^64 + 2^62 and 5 * 2^124 */
	CHECK(wide_is(&h.sum_ns, 1, UINT64_C(1) << 62));
	CHECK(wide_is(&h.sum_sq_ns2, UINT64_C(5) << 60, 0));
}

static void both_ways_to_square_agree(void)
{
	for (int i = 0; i < 100000; i++) {
		uint64_t ns = next_random() >> 32;
		struct wide squared = { 0 };

		wide_add_square(&squared, ns);
		CHECK(wide_is(&squared, 0, ns * ns));
	}
}

static void the_population_4_4_6_6_has_sum_20_and_squares_104(void)
{
	hist_init(&h);
	hist_add(&h, 4);
	hist_add(&h, 4);
	hist_add(&h, 6);
	hist_add(&h, 6);

	/* so its mean is 5 and its population standard deviation 1 */
	CHECK(wide_is(&h.sum_ns, 0, 20));
	CHECK(wide_is(&h.sum_sq_ns2, 0, 104));
	CHECK(h.count[4] == 2 && h.count[5] == 0 && h.count[6] == 2);
	CHECK(h.min_ns == 4 && h.max_ns == 6);
}

static void fewer_instructions_give_the_same(void)
{
	static struct hist usual;

	hist_init(&h);
	hist_init(&usual);
	hist_add(&h, HIST_USUAL_MAX);
	hist_add(&usual, HIST_USUAL_MAX);
	for (int i = 0; i < 100000; i++) {
		int64_t ns = (int64_t)(next_random() >> (32 + next_random() % 32));

		hist_add(&h, ns);
		hist_add_usual(&usual, ns);
	}
	CHECK(memcmp(&h, &usual, sizeof(h)) == 0);
}

int main(void)
{
	each_bucket_begins_where_the_one_before_ends();
	random_values_lie_in_their_buckets();
	a_bucket_spans_at_most_a_thousandth_of_its_values();
	values_without_a_bucket_are_counted();
	early_wakeups_are_in_no_sum_and_no_minimum();
	a_used_histogram_is_empty_after_init();
	squares_are_exact_where_they_leave_one_word();
	sums_carry_into_the_high_word();
	both_ways_to_square_agree();
	fewer_instructions_give_the_same();
	the_population_4_4_6_6_has_sum_20_and_squares_104();
	return 0;
}
