/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worst - the K worst wake-ups of all CPUs with the path that led to each.
 *
 * The agent marks every candidate of the K worst of one thread, so the K worst of all
 * threads are among its marks. Of equal latencies the earlier one stays, as there.
 */
#ifndef WORST_H
#define WORST_H

#include <stdint.h>

#include "trace.h"

struct mark {
	unsigned int cpu;
	uint64_t at_ns;
	uint64_t latency_ns;
	uint64_t sequence;
};

/* At most `limit` paths, with at most `room` records together: those of the least late
 * are left out first, and marked as left out. */
void worst_init(unsigned int limit, uint64_t room);

/* Copies the path from the ring if this is one of the K worst so far. */
void worst_offer(const struct mark *mark);

unsigned int worst_count(void);
const struct path *worst_path(unsigned int i); /* worst first */

#endif
