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
	uint64_t executed; /* without the present turn */
	int64_t time_ns;   /* its place in virtual time, likewise: see clock.h */
	bool sleeps;       /* and nothing is to wake it */
	int64_t read_ns;   /* its latest reading of a clock */
	bool look;         /* the next block may find its state changed: see state.h */
	/* as last seen */
	bool interrupts; /* enabled */
	int64_t preempt;
	uint64_t task;
};

struct cpus {
	struct cpu cpu[CPUS_MAX];
	unsigned int count;
	struct cpu *now;     /* which executes */
	uint64_t at_ns;      /* while recording: time at which the block began */
	uint64_t executed;   /* by all CPUs, the block in progress included */
	uint64_t turn_began; /* value of executed */
	uint64_t turn_ends;  /* likewise; UINT64_MAX if the turn is not bounded */
	uint64_t quanta_ended;
};

extern struct cpus cpus;

/* Called by QEMU for each CPU in turn, before it executes anything. */
void cpus_add(unsigned int index);

/* Instructions that the CPU has executed so far. */
uint64_t cpus_executed(const struct cpu *cpu);

static inline unsigned int cpus_index(const struct cpu *cpu)
{
	return (unsigned int)(cpu - cpus.cpu);
}

void cpus_begin_turn(void *identity, unsigned int of_block);
void cpus_end_quantum(void);

static inline bool cpus_is_executing(void)
{
	return cpus.now->identity;
}

/* Returns whose turn it was; NULL: it has executed nothing. */
struct cpu *cpus_end_turn(void);

/* At the beginning of each block. */
static inline struct cpu *cpus_at_block(unsigned int instructions)
{
	void *identity = current_cpu;

	if (__builtin_expect(identity != cpus.now->identity, 0))
		cpus_begin_turn(identity, instructions);
	return cpus.now;
}

static inline void cpus_count(unsigned int instructions)
{
	cpus.executed += instructions;
	if (__builtin_expect(cpus.executed >= cpus.turn_ends, 0))
		cpus_end_quantum();
}

#endif
