/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ring.h"

#include <errno.h>
#include <stdlib.h>

struct ring ring;

int ring_init(uint64_t records)
{
	uint64_t size = 1;

	while (size < records)
		size *= 2;
	ring.record = calloc(size, sizeof(struct record));
	ring.mask = size - 1;
	return ring.record ? 0 : -ENOMEM;
}

uint64_t ring_find(uint64_t at_ns, uint64_t disorder_ns)
{
	uint64_t low = ring_oldest();
	uint64_t high = ring.head;
	uint64_t before_ns = at_ns > disorder_ns ? at_ns - disorder_ns : 0;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (record_at_ns(ring_get(middle)) < before_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
