/* SPDX-License-Identifier: MIT */
/*
 * watchcost - what watching costs the watched: measured on this machine, by a thread of
 * the agent that watches itself. The watched process has no part in it.
 */
#ifndef WATCHCOST_H
#define WATCHCOST_H

#include "watch/watchstate.h"

/* How long a call takes the calling thread now. */
int64_t watchcost_call_ns(void);

/* Fills w->cost; takes some milliseconds. What cannot be watched stays 0.
 * `watched_call_ns`: how long a call takes under all events; 0: unknown. */
void watchcost_measure(struct watch *w, int64_t watched_call_ns);

#endif
