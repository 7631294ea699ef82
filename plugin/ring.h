/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ring - the recent past: the last records, overwritten in order. */
#ifndef RING_H
#define RING_H

#include <stdint.h>

#include "record.h"

struct ring {
	struct record *record;
	uint64_t mask; /* their number, a power of two, less one */
	uint64_t head; /* how many were ever added */
};

extern struct ring ring;

/* At least so many. Returns 0 or -errno. */
int ring_init(uint64_t records);

static inline void ring_add(struct record r)
{
	ring.record[ring.head++ & ring.mask] = r;
}

static inline const struct record *ring_get(uint64_t number)
{
	return &ring.record[number & ring.mask];
}

static inline uint64_t ring_oldest(void)
{
	return ring.head > ring.mask ? ring.head - ring.mask - 1 : 0;
}

/* Records of the CPUs are in the order in which QEMU executed them, so a little
 * disordered in time. Returns where those begin that may be at this time or later: a
 * record that is still there, behind all that are earlier by more than the disorder. */
uint64_t ring_find(uint64_t at_ns, uint64_t disorder_ns);

#endif
