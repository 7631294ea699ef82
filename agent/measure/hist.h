/* SPDX-License-Identifier: MIT */
/*
 * hist - latency histogram and exact sums of one measuring thread.
 *
 * Written by its sampler only: load and store, no exchange, no lock. Others may read the
 * counts meanwhile, and the rest after that thread has been joined.
 *
 * Below 2^HIST_SUB_BITS ns each value has its own bucket; above, every power of two is
 * cut into 2^HIST_SUB_BITS equal buckets, so a bucket spans at most 0.1 % of the values
 * in it. Nothing is dropped: early and overflow count what has no bucket, and min, max and
 * the sums are exact, not rounded to buckets.
 */
#ifndef HIST_H
#define HIST_H

#include <stdatomic.h>
#include <stdint.h>

#include "host/wide.h"

#define HIST_SUB_BITS 10
#define HIST_MAX_BITS 34 /* 2^34 ns = 17 s, longer than any interval we allow */
#define HIST_BUCKETS  ((HIST_MAX_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	_Atomic uint64_t early; /* woke before its time; in no sum, no bucket */
	_Atomic uint64_t
		overflow; /* 2^HIST_MAX_BITS ns or more; in the sums, in no bucket */
	int64_t min_ns;   /* of all but the early ones; INT64_MAX if there are none */
	int64_t max_ns;
	struct wide sum_ns;
	struct wide sum_sq_ns2;
	_Atomic uint64_t count[HIST_BUCKETS];
};

void hist_init(struct hist *h);

/* Called from the sampler only: bounded time, no system call, no allocation. */
static inline unsigned int hist_bucket(uint64_t ns)
{
	/* the bit: values below it are not shifted either */
	uint64_t at_least = ns | 1u << HIST_SUB_BITS;
	unsigned int shift =
		63 - (unsigned int)__builtin_clzll(at_least) - HIST_SUB_BITS;

	return (shift << HIST_SUB_BITS) + (unsigned int)(ns >> shift);
}

/* Safe from any thread. */
static inline uint64_t hist_peek(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

/* One writer, so load and store do the work of a costlier exchange. */
static inline void hist_bump(_Atomic uint64_t *n)
{
	atomic_store_explicit(n, hist_peek(n) + 1, memory_order_relaxed);
}

/* Any latency. */
void hist_add(struct hist *h, int64_t latency_ns);

/* The same in fewer instructions: of 0 to HIST_USUAL_MAX, and no new maximum. */
#define HIST_USUAL_MAX UINT32_MAX /* its square fits one word */

static inline void hist_add_usual(struct hist *h, int64_t latency_ns)
{
	uint64_t ns = (uint64_t)latency_ns;

	wide_add(&h->sum_sq_ns2, ns * ns, 0);
	h->sum_ns.low += ns; /* shorter than the interval: no carry in 500 years */
	if (latency_ns < h->min_ns)
		h->min_ns = latency_ns;
	hist_bump(&h->count[hist_bucket(ns)]);
}

/* Smallest value that falls into the bucket. */
int64_t hist_bucket_low_ns(unsigned int bucket);

#endif
