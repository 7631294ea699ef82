/* SPDX-License-Identifier: MIT */
/*
 * watchproc - asks the kernel about the watched process, as it is now: the flags of its
 * descriptors, and its memory. An answer about a descriptor is kept until it is forgotten.
 */
#ifndef WATCHPROC_H
#define WATCHPROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WATCHPROC_DESCRIPTORS 64

struct watchproc {
	int pid;
	struct {
		int fd; /* plus 1; 0: none */
		bool nonblocking;
	} known[WATCHPROC_DESCRIPTORS];
};

/* For struct watchcalls_process; `of` is a struct watchproc. */
bool watchproc_nonblocking(void *of, int fd);
bool watchproc_copy(void *of, uint64_t address, void *to, size_t size);

void watchproc_forget(struct watchproc *p);

#endif
