/* SPDX-License-Identifier: MIT */
/*
 * worst - the K worst wake-ups of one thread, kept without a threshold set beforehand.
 *
 * Written by the sampler only, read after the join. Of equal latencies the earlier one
 * stays: it explains the machine before anything could get used to it.
 */
#ifndef WORST_H
#define WORST_H

#include <stdint.h>

#define WORST_MAX 64

struct wakeup {
	uint64_t seq; /* number of the period on the grid, from 1 */
	int64_t expiry_ns;
	int64_t wake_ns;
};

struct worst {
	unsigned int limit; /* K */
	unsigned int count;
	int64_t bar_ns; /* latencies up to this one need not be offered */
	struct wakeup entry[WORST_MAX]; /* worst first */
};

/* limit is cut to WORST_MAX; with limit 0 nothing is kept. */
void worst_init(struct worst *w, unsigned int limit);

/* Bounded time: at most WORST_MAX moves. The caller compares with bar_ns first. */
void worst_offer(struct worst *w, struct wakeup wakeup);

#endif
