/* SPDX-License-Identifier: MIT */
/*
 * watchproc - asks the kernel about the watched process, as it is now: the flags of its
 * descriptors, its memory, its program. An answer is kept until it is forgotten.
 */
#ifndef WATCHPROC_H
#define WATCHPROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch/watchcalls.h"

#define WATCHPROC_DESCRIPTORS 64
#define WATCHPROC_SITES       64

struct watchproc {
	int pid;
	struct {
		int fd; /* plus 1; 0: none */
		enum watchcalls_descriptor is;
	} known[WATCHPROC_DESCRIPTORS];
	struct {
		uint64_t ip; /* 0: none */
		bool int80;
	} site[WATCHPROC_SITES];
};

/* For struct watchcalls_process; `of` is a struct watchproc. */
enum watchcalls_descriptor watchproc_descriptor(void *of, int fd);
bool watchproc_copy(void *of, uint64_t address, void *to, size_t size);

/* Whether a thread that goes on here has entered the kernel by int 0x80, as code of 32 bits
 * does on x86, and other code may. */
bool watchproc_is_int80(struct watchproc *p, uint64_t ip);

/* Whose numbers the calls of its program have. */
enum watchcalls_abi watchproc_abi(int pid);

/* Copies the kernel's code in a process, of which there is no file, whole pages and what
 * may follow it; returns how many bytes, 0 if it cannot be read. */
size_t watchproc_vdso(int pid, void *to, size_t size);

void watchproc_forget(struct watchproc *p);

#endif
