/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arch - what the plugin must know of an architecture: the agent's marker, where the
 * interrupt-enable flag is, and by which instructions its changes can be noticed.
 */
#ifndef ARCH_H
#define ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

#define ARCH_INSTRUCTION_BYTES 16

/* The first bytes of an instruction; the rest is zero. */
struct instruction {
	uint8_t byte[ARCH_INSTRUCTION_BYTES];
	size_t size;
};

struct arch {
	const char *name;               /* as QEMU names it */
	const char *latency, *sequence; /* registers of the marker */
	bool (*is_marker)(const struct instruction *i);
	/* Linux' way into the kernel, which the CPU enters with interrupts disabled. */
	bool (*is_entry)(const struct instruction *i);
	/* The next block may find interrupts enabled or disabled by it. */
	bool (*may_switch_interrupts)(const struct instruction *i);
	/* The next block may find another preemption count, kept at this place; it may
	 * say yes too often. */
	bool (*may_count)(const struct instruction *i, const struct place *count);
	/* The CPU's own, or one that is a device. */
	bool (*reads_clock)(const struct instruction *i);
	/* A CPU that spins waits for others by it; QEMU ends its turn there. */
	bool (*is_pause)(const struct instruction *i);
	/* The CPU may sleep behind it. */
	bool (*is_wait)(const struct instruction *i);
	const char *argument[3], *result; /* registers of a function */
	/* offsets in the registers of a system call: its arguments, and its number; 0: that
	 * is the second argument */
	unsigned int call_argument[3], call_number;
	uint32_t call_sleep; /* the number of clock_nanosleep */
	bool count_tells;    /* bit 31 of the count is clear if a switch is due */
	const char *vector;  /* the register that identifies interrupts; or NULL */
	const char *flags;   /* the register with the interrupt flag */
	uint64_t flag;
	bool flag_masks; /* set: interrupts are off */
};

/* NULL: an architecture without boards. */
const struct arch *arch_find(const char *name);

#endif
