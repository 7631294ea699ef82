/* SPDX-License-Identifier: MIT */
#include "measure/hist.h"

#include <string.h>

void hist_init(struct hist *h)
{
	/* no compound literal: a compiler may build its 200 KB on the thread's stack */
	memset(h, 0, sizeof(*h));
	h->min_ns = INT64_MAX;
	h->max_ns = INT64_MIN;
}

void hist_add(struct hist *h, int64_t latency_ns)
{
	const uint64_t ns = (uint64_t)latency_ns;

	if (latency_ns < 0) {
		hist_bump(&h->early);
		return;
	}
	wide_add_square(&h->sum_sq_ns2, ns);
	wide_add(&h->sum_ns, ns, 0);
	if (latency_ns < h->min_ns)
		h->min_ns = latency_ns;
	if (latency_ns > h->max_ns)
		h->max_ns = latency_ns;
	if (ns >> HIST_MAX_BITS == 0)
		hist_bump(&h->count[hist_bucket(ns)]);
	else
		hist_bump(&h->overflow);
}

int64_t hist_bucket_low_ns(unsigned int bucket)
{
	const unsigned int sub = 1u << HIST_SUB_BITS;
	unsigned int shift;

	if (bucket < 2 * sub)
		return bucket;

	shift = (bucket >> HIST_SUB_BITS) - 1;
	return (int64_t)((bucket & (sub - 1)) + sub) << shift;
}
