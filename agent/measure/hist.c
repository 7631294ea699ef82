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

void wide_add_square(struct wide *w, uint64_t ns)
{
	uint64_t high = ns >> 32, low = ns & UINT32_MAX;
	uint64_t cross = high * low;

	/* (high * 2^32 + low)^2 = high^2 * 2^64 + 2 * cross * 2^32 + low^2 */
	wide_add(w, low * low, high * high);
	wide_add(w, cross << 33, cross >> 31);
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
