/* SPDX-License-Identifier: MIT */
/*
 * wakecost - how late the calling thread wakes from a sleep to a time, as cyclictest
 * measures it: once while nothing is watched and once while all is, it is the cost of
 * watching for a wake-up.
 */
#ifndef WAKECOST_H
#define WAKECOST_H

#include <stdint.h>

#define WAKECOST_SLEEPS 64 /* of a millisecond each */

/* The calling thread gets the lowest real-time priority, if it may: those of programs
 * preempt it, ordinary ones do not. */
void wakecost_begin(void);
void wakecost_end(void);

/* The median. Other work of rtscope would delay them as well: it waits meanwhile. */
int64_t wakecost_ns(void);

#endif
