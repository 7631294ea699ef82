/* SPDX-License-Identifier: MIT */
/*
 * waitclock - the word of memory that a call waits for, and whether a call waits until a
 * time of a clock that others set. Pure.
 */
#ifndef WAITCLOCK_H
#define WAITCLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/timeline.h"

#define WAITCLOCK_ARGS 6

/* Of a call for a word: also of one that wakes others of it. */
void waitclock_read_futex(const char *name, const uint64_t args[WAITCLOCK_ARGS],
			  struct timeline_record *out);

/* Of each other call. */
bool waitclock_is_settable(const char *name, const uint64_t args[WAITCLOCK_ARGS]);

/* Of a timerfd: `info` is what /proc says of it. */
bool waitclock_is_settable_timer(const char *info);

#endif
