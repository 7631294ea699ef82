/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * icount - QEMU's clock: where QEMU counts the instructions of a turn, read and set.
 *
 * QEMU's virtual time is (count << shift) + bias. Of the CPU that executes, the count
 * lacks what is in three numbers of the CPU: it is count + budget - extra - low. `low`
 * goes down by the instructions of a block when that begins; a block that is left early
 * gets the rest back. So all of this is exact, and includes the block in progress.
 *
 * The count and the bias are in QEMU's variable timers_state; where, no header says.
 * Where a CPU has its numbers differs from version to version: they are looked for by
 * letting QEMU write budgets of our choice.
 */
#ifndef ICOUNT_H
#define ICOUNT_H

#include <stdint.h>

#include "qemu.h"

struct icount {
	int64_t *count, *bias;
	unsigned int shift;
	long budget, extra, low; /* offsets in a CPU */
};

extern struct icount icount;

/* In the first block of all, which has so many instructions. Returns NULL, or what this QEMU does otherwise. */
const char *icount_init(unsigned int of_block);

/* Instructions that all CPUs have executed, with the block in progress. Only where a CPU
 * executes. */
static inline int64_t icount_executed(void)
{
	const char *cpu = current_cpu;

	return *icount.count + *(const int64_t *)(cpu + icount.budget) -
	       *(const int64_t *)(cpu + icount.extra) -
	       *(const uint16_t *)(cpu + icount.low);
}

/* The same for all of a turn: QEMU moves instructions from one of the numbers to another
 * meanwhile, but the sum of the first two stays, and so does that of the others. */
struct icount_turn {
	int64_t most; /* what is executed if all of the turn is */
	const int64_t *extra;
	const uint16_t *low;
};

static inline struct icount_turn icount_of_turn(void)
{
	const char *cpu = current_cpu;

	return (struct icount_turn){
		.most = *icount.count + *(const int64_t *)(cpu + icount.budget),
		.extra = (const int64_t *)(cpu + icount.extra),
		.low = (const uint16_t *)(cpu + icount.low),
	};
}

static inline int64_t icount_left(const struct icount_turn *turn)
{
	return *turn->extra + *turn->low;
}

/* The same as virtual time in ns. */
static inline int64_t icount_clock(void)
{
	return (icount_executed() << icount.shift) + *icount.bias;
}

/* The clock while no CPU executes. */
static inline int64_t icount_clock_between(void)
{
	return (*icount.count << icount.shift) + *icount.bias;
}

static inline void icount_move_clock(int64_t ns)
{
	*icount.bias += ns;
}

/* In a block: virtual time until the next timer by QEMU's clock without that block's
 * turn so far; -1: there is none. */
int64_t icount_until_timer(void);

/* In the first block of a turn: the turn ends after so many instructions, with this
 * block's, at least. */
void icount_set_budget(int64_t instructions, unsigned int of_block);

/* In the first block of a turn, before its first instruction: ends the turn at once.
 * Does not return. */
void icount_leave(void) __attribute__((noreturn));

/* In any block that follows a change of privilege, before its first instruction: gives
 * the block back and leaves it, so that an end of the turn that was asked for comes now.
 * Does not return. */
void icount_leave_block(unsigned int of_block) __attribute__((noreturn));

#endif
