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

uint64_t ring_find(uint64_t at)
{
	uint64_t low = ring.head > ring.mask ? ring.head - ring.mask - 1 : 0;
	uint64_t high = ring.head;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (record_at(ring_get(middle)) < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
