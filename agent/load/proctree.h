/* SPDX-License-Identifier: MIT */
/*
 * proctree - the processes below this one: how much they ran, and ending them all.
 *
 * The caller is a child subreaper, so that a process whose parent ends stays below it.
 */
#ifndef PROCTREE_H
#define PROCTREE_H

#include <stdint.h>

#include "machine/procstat.h"

struct proctree {
	unsigned int processes;
	int64_t cpu_ns; /* of all that live or were waited for below here */
};

/* Gets each process below, zombies too, by ascending pid. NULL: nobody wants them. */
typedef void proctree_visitor(void *context, const struct procstat *process);

void proctree_look(struct proctree *out, proctree_visitor *visit, void *context);

/*
 * Asks every process below to end, waits up to timeout_ms, then kills until none is
 * left. Returns how many had to be killed.
 */
unsigned int proctree_end(int timeout_ms);

#endif
