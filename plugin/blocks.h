/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * blocks - what is known of a translated block, kept as long as QEMU runs.
 *
 * QEMU translates the same block many times (it drops all translations when their
 * memory is full); equal blocks share one entry, so that memory does not grow with them.
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

struct block {
	uint64_t address;
	unsigned int instructions;
	unsigned int in_program; /* of them; 0 in the kernel */
	/* where interrupts may be found enabled or disabled: see state.h */
	bool look_at_begin, look_after;
	/* for sections of the kernel: see sections.h */
	bool may_count, waits, schedules, idles, sleeps, exits;
	bool after_switch; /* begins the function that a new task begins with */
	bool wakes;        /* begins the function that wakes a task */
	bool renames;      /* likewise, that gives a task a name */
	uint32_t number;   /* from 0 on, in the order of blocks_intern() */
};

/* With the functions of the kernel that begin there. */
struct block blocks_at(uint64_t address, unsigned int instructions,
		       const struct options *options);

const struct block *blocks_intern(struct block block);

#endif
