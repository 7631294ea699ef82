/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpus - which CPU executes, how many instructions each has executed, and when its turn
 * ends.
 *
 * A CPU's turn ends by cpu_exit() after `slice` instructions; else a busy CPU would keep
 * one with a pending interrupt waiting until the next virtual timer, for milliseconds.
 *
 * Counted are the instructions of blocks that were begun. An exception in the middle of
 * a block, or an access to a device, leaves a block early; so the count runs ahead of
 * QEMU's own by a few instructions at each. It is the same in every run.
 */
#ifndef CPUS_H
#define CPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "qemu.h"

#define CPUS_MAX 64

#define CPU_PREEMPT_UNKNOWN INT64_C(-1)
#define CPU_TASK_UNKNOWN    UINT64_MAX

struct cpu {
	void *identity;
	uint64_t executed; /* without the turn that it has now */
	bool look;         /* the next block may find its state changed: see state.h */
	/* as last seen */
	bool interrupts; /* enabled */
	int64_t preempt;
	uint64_t task;
};

struct cpus {
	struct cpu cpu[CPUS_MAX];
	unsigned int count;
	struct cpu *now;     /* whose turn it is */
	uint64_t executed;   /* by all CPUs, the block in progress included */
	uint64_t turn_began; /* value of executed */
	uint64_t turn_ends;  /* likewise; UINT64_MAX if turns are not bounded */
	uint64_t slice;
	uint64_t turns_ended; /* by us */
};

extern struct cpus cpus;

void cpus_init(uint64_t slice);

/* Called by QEMU for each CPU in turn, before it executes anything. */
void cpus_add(unsigned int index);

/* Instructions that the CPU has executed so far. */
uint64_t cpus_executed(const struct cpu *cpu);

static inline unsigned int cpus_index(const struct cpu *cpu)
{
	return (unsigned int)(cpu - cpus.cpu);
}

void cpus_begin_turn(void *identity);
void cpus_end_turn(void);

/* At the beginning of each block. */
static inline struct cpu *cpus_at_block(void)
{
	void *identity = current_cpu;

	if (__builtin_expect(identity != cpus.now->identity, 0))
		cpus_begin_turn(identity);
	return cpus.now;
}

static inline void cpus_count(unsigned int instructions)
{
	cpus.executed += instructions;
	if (__builtin_expect(cpus.executed >= cpus.turn_ends, 0))
		cpus_end_turn();
}

#endif
