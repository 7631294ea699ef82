/* SPDX-License-Identifier: MIT */
#include "host/wide.h"

void wide_add_square(struct wide *w, uint64_t ns)
{
	uint64_t high = ns >> 32, low = ns & UINT32_MAX;
	uint64_t cross = high * low;

	/* (high * 2^32 + low)^2 = high^2 * 2^64 + 2 * cross * 2^32 + low^2 */
	wide_add(w, low * low, high * high);
	wide_add(w, cross << 33, cross >> 31);
}
