/* SPDX-License-Identifier: MIT */
/* candidates: in order, none twice, the lost ones counted; also between two threads. */
#include "trace/candidates.h"

#include <pthread.h>
#include <string.h>

#include "tests/check.h"

#define MANY 200000

static struct candidates ring;

static struct wakeup numbered(uint64_t n)
{
	return (struct wakeup){ .seq = n,
				.expiry_ns = (int64_t)n,
				.wake_ns = (int64_t)(2 * n) };
}

static void what_goes_in_comes_out_in_order(void)
{
	struct wakeup w;

	CHECK(!candidates_pop(&ring, &w));
	for (uint64_t n = 1; n <= 3; n++)
		candidates_push(&ring, numbered(n));
	for (uint64_t n = 1; n <= 3; n++) {
		CHECK(candidates_pop(&ring, &w));
		CHECK(w.seq == n && w.wake_ns == (int64_t)(2 * n));
	}
	CHECK(!candidates_pop(&ring, &w));
}

static void a_full_ring_counts_what_it_lost(void)
{
	struct wakeup w;

	for (uint64_t n = 0; n < CANDIDATES_SLOTS + 5; n++)
		candidates_push(&ring, numbered(n));
	CHECK(ring.lost == 5);
	for (uint64_t n = 0; n < CANDIDATES_SLOTS; n++)
		CHECK(candidates_pop(&ring, &w) && w.seq == n);
	CHECK(!candidates_pop(&ring, &w));
}

static void *push_many(void *arg)
{
	struct candidates *c = arg;

	for (uint64_t n = 1; n <= MANY; n++)
		candidates_push(c, numbered(n));
	return NULL;
}

static void two_threads_see_whole_ones(void)
{
	struct wakeup w;
	pthread_t thread;
	uint64_t last = 0, got = 0;
	bool ended = false;

	memset(&ring, 0, sizeof(ring));
	CHECK(pthread_create(&thread, NULL, push_many, &ring) == 0);
	while (!ended) {
		ended = ring.head + ring.lost == MANY;
		while (candidates_pop(&ring, &w)) {
			CHECK(w.seq > last);
			CHECK(w.expiry_ns == (int64_t)w.seq);
			CHECK(w.wake_ns == (int64_t)(2 * w.seq));
			last = w.seq;
			got++;
		}
	}
	pthread_join(thread, NULL);
	CHECK(got + ring.lost == MANY);
}

int main(void)
{
	what_goes_in_comes_out_in_order();
	a_full_ring_counts_what_it_lost();
	two_threads_see_whole_ones();
	return 0;
}
