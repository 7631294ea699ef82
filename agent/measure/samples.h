/* SPDX-License-Identifier: MIT */
/*
 * samples - the latency of each wake-up, kept in memory for the whole of a run.
 *
 * The memory is taken, touched and locked before the run. A measuring thread stores one
 * number for each wake-up; nothing leaves before all threads have ended.
 */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <stdint.h>

#include "host/emit.h"

#define SAMPLES_NONE INT64_MIN /* a period without a wake-up */

/* Of the periods of one thread: 10 minutes at 200 us are 3,000,000. */
#define SAMPLES_MAX 4194304

struct samples {
	/* [i]: the latency of the wake-up that was due at start + (i + 1) * interval */
	int64_t *latency_ns;
	uint32_t room;
};

/* Memory for n threads, each with `room` periods; all of them without a wake-up. NULL:
 * errno says why. */
struct samples *samples_alloc(unsigned int n, uint32_t room);
void samples_free(struct samples *s, unsigned int n);

/* Emits the first `periods` of a thread as lines of the contract. */
void samples_emit(const struct samples *s, int cpu, uint32_t periods, struct emit *out);

#endif
