/* SPDX-License-Identifier: MIT */
/*
 * growth - what histograms have grown by since it was last told.
 *
 * The supervisor reads the counts while their threads go on, and tells once a second only
 * what is new. Whoever adds it up has the distribution of a run whose result never comes,
 * but for its last second.
 */
#ifndef GROWTH_H
#define GROWTH_H

#include "host/emit.h"
#include "measure/hist.h"
#include "measure/sampler.h"

/* Of one histogram, what has been told. */
struct growth {
	int64_t max_ns;
	uint64_t told[HIST_BUCKETS];
};

/* For n samplers, prefaulted. NULL: errno says why. */
struct growth *growth_alloc(unsigned int n);

/* Emits the growth line of n samplers, which leaves with the next line: all of it has then
 * been told. max_ns: the largest latency of each since the last call. */
void growth_emit(struct growth *g, const struct sampler *s, const int64_t *max_ns,
		 unsigned int n, struct emit *out);

#endif
