/* SPDX-License-Identifier: MIT */
/*
 * watchcalls - the system calls that cost a thread time, and the kernel's filters that
 * let just them through. Pure.
 */
#ifndef WATCHCALLS_H
#define WATCHCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch/timeline.h"

#define WATCHCALLS_ARGS 6

/* Of the calls that take the lock of the process's memory, and of those that may wait.
 * False: it has no room. */
bool watchcalls_filter_memory(char *filter, size_t size);
bool watchcalls_filter_blocking(char *filter, size_t size);

/* The filter of the system calls that are timed, from their entry to their return. */
bool watchcalls_filter_timed(char *filter, size_t size);

/* What is known of the process that makes a call. */
struct watchcalls_process {
	void *of;
	/* Whether a descriptor has O_NONBLOCK and is of no file, directory or disk; or is
	 * of a timer or of events. */
	bool (*nonblocking)(void *of, int fd);
	/* Copies from its memory, as the call was made; false: it cannot be read. NULL:
	 * it is not known, and the record is unsure. */
	bool (*copy)(void *of, uint64_t address, void *to, size_t size);
	unsigned int word; /* of the kernel: its long, in bytes */
};

/* Fills in what a record of an entry says of the call; false for one that is not timed. */
bool watchcalls_read(long number, const uint64_t args[WATCHCALLS_ARGS],
		     const struct watchcalls_process *process,
		     struct timeline_record *out);

#endif
