/* SPDX-License-Identifier: MIT */
/*
 * watchplaces - the CPUs, as a place for the events of a few watched threads.
 *
 * An event that is a thread's own is taken in and out at each switch of the thread, which
 * delays its wake-up. An event of a CPU is not; it is compared with the thread each time
 * it happens there, also to others. So tracepoints are of CPUs, one of each CPU for each
 * thread, for as many threads as pays; all others, and what has no filter, are a thread's
 * own. The ring of a CPU has what comes of all threads.
 */
#ifndef WATCHPLACES_H
#define WATCHPLACES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "machine/cpulist.h"
#include "watch/perfevent.h"

#define WATCHPLACES_MAX_CPUS 64

/* In err, beside the kernel's: its numbers of threads are not ours, too many CPUs. */
#define WATCHPLACES_NAMESPACE (-EXDEV)
#define WATCHPLACES_CPUS      (-E2BIG)

/* Each thread makes what happens on a CPU slower for all. */
#define WATCHPLACES_THREADS  8 /* if they are real-time */
#define WATCHPLACES_ORDINARY 4 /* else: room is left for real-time ones */

struct watchplaces {
	int err; /* -errno: events cannot be of CPUs here */
	int cpu[WATCHPLACES_MAX_CPUS];
	unsigned int cpus;
	struct perfring stacks[WATCHPLACES_MAX_CPUS];
	unsigned int threads;   /* whose tracepoints are here now */
	unsigned int elsewhere; /* real-time ones that have events of their own */
};

/* Makes the rings. Else err says why not. */
void watchplaces_open(struct watchplaces *p, const struct cpulist *online);

/* Whether there is room for one thread more. */
bool watchplaces_have_room(const struct watchplaces *p, bool real_time);

void watchplaces_close(struct watchplaces *p);

#endif
