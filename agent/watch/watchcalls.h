/* SPDX-License-Identifier: MIT */
/*
 * watchcalls - the system calls that cost a thread time, and the kernel's filters that
 * let just them through. Pure.
 */
#ifndef WATCHCALLS_H
#define WATCHCALLS_H

#include <stddef.h>
#include <stdint.h>

#include "watch/timeline.h"

/* Of the calls that take the lock of the process's memory, and of those that may wait. */
void watchcalls_filter_memory(char *filter, size_t size);
void watchcalls_filter_blocking(char *filter, size_t size);

/* The filter of the system calls that are timed, from their entry to their return. */
void watchcalls_filter_timed(char *filter, size_t size);

/* Which of them it is: a futex only if it waits for what looks like a lock. TIMED_NOT, or
 * its kind and name. */
enum timeline_kind watchcalls_timed(long call, const uint64_t args[3],
				    const char **name);

#endif
