/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpus - which CPU executes, how many instructions each has executed, and when its
 * quantum ends.
 *
 * A CPU's quantum ends by cpu_exit() after `quantum` instructions; else a busy CPU would keep
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
	uint64_t executed; /* without the present quantum */
	bool look;         /* the next block may find its state changed: see state.h */
	/* as last seen */
	bool interrupts; /* enabled */
	int64_t preempt;
	uint64_t task;
};

struct cpus {
	struct cpu cpu[CPUS_MAX];
	unsigned int count;
	struct cpu *now;        /* which executes */
	uint64_t executed;      /* by all CPUs, the block in progress included */
	uint64_t quantum_began; /* value of executed */
	uint64_t quantum_ends;  /* likewise; UINT64_MAX if quanta are not bounded */
	uint64_t quantum;
	uint64_t quanta_ended; /* by us */
};

extern struct cpus cpus;

void cpus_init(uint64_t quantum);

/* Called by QEMU for each CPU in turn, before it executes anything. */
void cpus_add(unsigned int index);

/* Instructions that the CPU has executed so far. */
uint64_t cpus_executed(const struct cpu *cpu);

static inline unsigned int cpus_index(const struct cpu *cpu)
{
	return (unsigned int)(cpu - cpus.cpu);
}

void cpus_begin_quantum(void *identity);
void cpus_end_quantum(void);

/* At the beginning of each block. */
static inline struct cpu *cpus_at_block(void)
{
	void *identity = current_cpu;

	if (__builtin_expect(identity != cpus.now->identity, 0))
		cpus_begin_quantum(identity);
	return cpus.now;
}

static inline void cpus_count(unsigned int instructions)
{
	cpus.executed += instructions;
	if (__builtin_expect(cpus.executed >= cpus.quantum_ends, 0))
		cpus_end_quantum();
}

#endif
