/* SPDX-License-Identifier: MIT */
/*
 * watchcost - what watching costs the watched: measured on this machine, by a thread of
 * the agent that watches itself. The watched process has no part in it.
 */
#ifndef WATCHCOST_H
#define WATCHCOST_H

#include "watch/watchstate.h"

/* Fills w->cost; takes some milliseconds. What cannot be watched stays 0. */
void watchcost_measure(struct watch *w);

#endif
