/* SPDX-License-Identifier: MIT */
/*
 * wakecost - how late the calling thread wakes from a sleep to a time, as cyclictest
 * measures it: once while nothing is watched and once while all is, it is the cost of
 * watching for a wake-up.
 */
#ifndef WAKECOST_H
#define WAKECOST_H

#include <stdint.h>

#define WAKECOST_SLEEPS 64 /* of a millisecond and some more each */

/* The calling thread gets the lowest real-time priority, if it may: those of programs
 * preempt it, ordinary ones do not. It goes where the process's first real-time thread may
 * run: CPUs differ. Where that leaves it no time it returns to those it had before. */
void wakecost_begin(int pid);
void wakecost_end(void);

/* How late, the medians; 0: unknown. */
struct wakecost {
	int64_t alone_ns;
	int64_t beside_ns; /* on a CPU that another thread uses: that is interrupted */
};

/* Other work of rtscope would delay them as well: it waits meanwhile. The other thread is
 * an ordinary one of the agent that copies zeros. */
struct wakecost wakecost_measure(void);

#endif
