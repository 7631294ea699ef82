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

int64_t hist_bucket_low_ns(unsigned int bucket)
{
	const unsigned int sub = 1u << HIST_SUB_BITS;
	unsigned int shift;

	if (bucket < 2 * sub)
		return bucket;

	shift = (bucket >> HIST_SUB_BITS) - 1;
	return (int64_t)((bucket & (sub - 1)) + sub) << shift;
}
