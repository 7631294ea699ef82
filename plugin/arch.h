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
#define ARCH_UNWOUND           33
#define ARCH_CALL_BYTES        288

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
	const char *argument[4], *result, *stack; /* registers of a function */
	/* Offsets in struct pt_regs, the registers of a program in the kernel: arguments of a
	 * system call; its number, 0: that is the second argument of its function; what
	 * proves that it is one; the instruction that the program goes on with, and by how
	 * much it is behind that at a call; the stack pointer */
	unsigned int call_argument[3], call_number, call_proof, call_pc, call_ends,
		call_sp;
	unsigned int call_bytes; /* of it that are read, ARCH_CALL_BYTES at most */
	uint32_t call_sleep, call_futex; /* the numbers of clock_nanosleep and futex */
	uint64_t call_proves;            /* 0: the number */
	/* A call of a program of 32 bits: the word of struct pt_regs that tells its mode, and
	 * the bits of that; 0: there are none. The numbers of clock_nanosleep with seconds of
	 * 64 bits, and of futex with either. */
	unsigned int narrow_word;
	uint64_t narrow_bits;
	uint32_t narrow_sleep, narrow_futex[2];
	/* The registers of a program that unwinding needs, in the order of perf_regs.h, as
	 * QEMU names them and by their offsets in struct pt_regs. */
	struct {
		const char *name;
		unsigned int offset;
	} unwound[ARCH_UNWOUND];
	unsigned int
		link; /* which of them has the return address; 0: the stack has it */
	const char *page_tables; /* see usermemory.h */
	/* Addresses in the lower half that are no program's: of a firmware. */
	uint64_t firmware, firmware_end;
	bool count_tells;   /* bit 31 of the count is clear if a switch is due */
	const char *vector; /* the register that identifies interrupts; or NULL */
	const char *flags;  /* the register with the interrupt flag */
	uint64_t flag;
	bool flag_masks; /* set: interrupts are off */
};

/* NULL: an architecture without boards. */
const struct arch *arch_find(const char *name);

#endif
