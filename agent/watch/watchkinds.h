/* SPDX-License-Identifier: MIT */
/*
 * watchkinds - what is counted of each thread: software events, tracepoints with a
 * filter, and probes.
 */
#ifndef WATCHKINDS_H
#define WATCHKINDS_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "watch/timeline.h"
#include "watch/watchreport.h"

/* Fills kinds, and refused where one cannot be had here. While the rights to look into
 * tracefs are there. */
void watchkinds_make(struct watch *w, const struct options *options);

/* The filter of the system calls that are timed, from their entry to their return. */
void watchkinds_filter_timed(char *filter, size_t size);

/* Which of them it is: a futex only if it waits for what looks like a lock. TIMED_NOT, or
 * its kind and name. */
enum timeline_kind watchkinds_timed(long call, const uint64_t args[3],
				    const char **name);

#endif
