/* SPDX-License-Identifier: MIT */
/*
 * watchkinds - what is counted of each thread: software events, tracepoints with a
 * filter, and probes.
 */
#ifndef WATCHKINDS_H
#define WATCHKINDS_H

#include "options.h"
#include "watch/watchstate.h"

/* Fills kinds, and refused where one cannot be had here. While the rights to look into
 * tracefs are there. */
void watchkinds_make(struct watch *w, const struct options *options);

#endif
