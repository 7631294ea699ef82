/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpus - which CPU executes, how many instructions each has executed, and when its
 * quantum ends.
 *
 * A CPU's turn ends by cpu_exit() where its quantum does: `turn_ends`, which clock.c sets
 * for each turn. Else a busy CPU would keep the others from executing until the next
 * virtual timer, for milliseconds.
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
	uint64_t executed;     /* without the present turn */
	int64_t time_ns;       /* its place in virtual time, likewise: see clock.h */
	bool sleeps;           /* and nothing is to wake it */
	int64_t held_until_ns; /* it executes nothing before: see clock_hold() */
	int64_t read_ns;       /* its latest reading of a clock */
	bool look; /* the next block may find its state changed: see state.h */
	/* as last seen */
	bool interrupts; /* enabled */
	int64_t preempt;
	uint64_t task;
};

struct cpus {
	struct cpu cpu[CPUS_MAX];
	unsigned int count;
	struct cpu *now; /* which executes */
	uint64_t at_ns;  /* while recording: time at which the block began */
	/* Their sum is what all CPUs have executed, the block in progress included. Each
	 * block adds its instructions to `counted`; if that makes it CPUS_LOOK or more, it
	 * is looked at what is due first. So most blocks cost one comparison. */
	uint64_t before, counted;
	uint64_t turn_began; /* a value of cpus_all_executed() */
	uint64_t turn_ends;  /* likewise; UINT64_MAX if the turn is not bounded */
	uint64_t quanta_ended;
};

/* A turn that is longer is looked at there and goes on. The operand of a comparison
 * holds 31 bits. */
#define CPUS_LOOK (UINT64_C(1) << 30)

extern struct cpus cpus;

/* Called by QEMU for each CPU in turn, before it executes anything. */
void cpus_add(unsigned int index);

static inline uint64_t cpus_all_executed(void)
{
	return cpus.before + cpus.counted;
}

/* Instructions that the CPU has executed so far. */
uint64_t cpus_executed(const struct cpu *cpu);

static inline unsigned int cpus_index(const struct cpu *cpu)
{
	return (unsigned int)(cpu - cpus.cpu);
}

/* Returns whose turn it is. */
struct cpu *cpus_begin_turn(void *identity);

static inline bool cpus_is_executing(void)
{
	return cpus.now->identity;
}

/* Returns whose turn it was; NULL: it has executed nothing. */
struct cpu *cpus_end_turn(void);

/* Something is due at the next block. */
static inline void cpus_look_at_next_block(void)
{
	cpus.before = cpus_all_executed() - CPUS_LOOK;
	cpus.counted = CPUS_LOOK;
}

/* Before the block's instructions are counted. */
static inline bool cpus_is_look_due(uint64_t instructions)
{
	return cpus.counted + instructions >= CPUS_LOOK;
}

/* After all that is due at a block, before its instructions are counted: ends the quantum
 * if they do. The next look is due when that ends, or at the next block. */
void cpus_before_count(unsigned int instructions, bool look_at_next_block);

#endif
