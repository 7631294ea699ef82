/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recorder - what is done at each block and each mark of a board that is recorded. */
#ifndef RECORDER_H
#define RECORDER_H

#include "blocks.h"
#include "cpus.h"
#include "options.h"
#include "ring.h"
#include "worst.h"

/* When the next window may begin: so that most blocks are done with one comparison. */
extern uint64_t recorder_next_window;

/* Returns 0 or -errno. */
int recorder_init(const struct options *options);

void recorder_at_block(struct cpu *cpu, const struct block *block);

static inline bool recorder_may_be_in_window(uint64_t at_ns)
{
	return at_ns >= recorder_next_window;
}

/* Outside of windows, and where no state may have changed. */
static inline void recorder_at_plain_block(unsigned int cpu, uint64_t at_ns,
					   uint64_t address)
{
	ring_add(record_make(RECORD_BLOCK, cpu, at_ns, address));
}

/* As requests_watch() tells it. */
void recorder_at_request(unsigned int cpu, uint64_t at_ns, uint64_t asked);

void recorder_at_mark(const struct mark *mark);

/* Returns 0 or -errno. */
int recorder_write(const struct options *options, const char *arch);

#endif
