/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clock - the virtual time of each CPU, so that all of them execute at the same time.
 *
 * QEMU executes one CPU after the other, and its clock would count all of them together.
 * Here each CPU has a time of its own (temporal decoupling, as in SystemC TLM-2.0): it
 * advances with the CPU's own instructions. The CPU that is furthest behind says what
 * time it is for timers and devices, and no other is ahead of it by more than a quantum.
 *
 * - A turn ends where the quantum does, and exactly at the next timer.
 * - A CPU that sleeps holds nobody up. It goes on at the time of what wakes it: a timer,
 *   or the instruction by which another CPU interrupts it.
 * - A CPU whose turn has not come yet may see what another one wrote up to a quantum
 *   later. So that no clock goes back from one to the other, a reading is never earlier
 *   than the latest of all CPUs; the clock of a CPU that got such a reading stands still
 *   until its own time has caught up.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "cpus.h"
#include "icount.h"

struct clock {
	int64_t now_ns;    /* no CPU that executes is before it */
	int64_t raised_ns; /* QEMU's clock is ahead of the executing CPU's time */
	bool look;         /* the next block is to see to one of these two */
	bool may_wake;     /* the block before may have interrupted another CPU */
	int64_t quantum_ns;
	struct icount_turn of_turn;
	int64_t turn_ns; /* of its end, if it executes all it may */
};

extern struct clock virtual_clock;

/* `quantum` in instructions; 0: only timers end a turn. */
void clock_init(uint64_t quantum);

/* By QEMU's loop, before the first turn: whether it sees where each one begins. */
void clock_set_turns_visible(bool visible);

/* In the first block of a turn; it does not return if it is not this CPU's time. */
void clock_begin_turn(void *identity, unsigned int of_block);

/* By QEMU's loop: before it looks at timers, and after each turn. */
void clock_before_turns(void);
void clock_end_turn(void);

/* Is called where a CPU's turn ends and it does not go on at that time. */
extern void (*clock_at_rest)(const struct cpu *cpu, uint64_t since_ns);

/* Before an instruction that reads a clock. */
void clock_at_reading(void);

/* Before an instruction that may interrupt another CPU. */
void clock_may_wake(void);

/* Before an instruction by which a CPU that spins lets others go first. */
void clock_at_pause(void);

void clock_look(unsigned int of_block);

/* In a block that follows a change of privilege, before its first instruction: the CPU
 * stands still for so long, as where firmware or a hypervisor takes it. Its timers and
 * those of others come at their times; what interrupts it waits. Does not return. */
void clock_hold(unsigned int of_block, uint64_t ns) __attribute__((noreturn));

/* QEMU executes one CPU after the other: what a CPU does may be as much earlier, in
 * virtual time, as what another one did before. */
static inline uint64_t clock_disorder_ns(void)
{
	return 2 * (uint64_t)virtual_clock.quantum_ns;
}

/* At the beginning of a block where something may be due. */
static inline struct cpu *clock_cpu_at_block(unsigned int instructions)
{
	void *identity = current_cpu;

	if (__builtin_expect(identity != cpus.now->identity, 0))
		clock_begin_turn(identity, instructions);
	return cpus.now;
}

/* At each block, once the turn has begun. */
static inline void clock_at_block(unsigned int of_block)
{
	if (__builtin_expect(virtual_clock.look, 0))
		clock_look(of_block);
}

/* What does not change in a turn, or not without a look at the next block: for
 * clock_turn_ns(). In a block. */
static inline void clock_remember_turn(void)
{
	virtual_clock.of_turn = icount_of_turn();
	virtual_clock.turn_ns = (virtual_clock.of_turn.most << icount.shift) +
				*icount.bias - virtual_clock.raised_ns;
}

/* The executing CPU's own time when a block of so many instructions began. */
static inline uint64_t clock_turn_ns(uint64_t instructions)
{
	int64_t left = icount_left(&virtual_clock.of_turn);

	return (uint64_t)(virtual_clock.turn_ns -
			  ((left + (int64_t)instructions) << icount.shift));
}

/* The executing CPU's own time, so many instructions before the end of the block. */
static inline int64_t clock_own_ns(uint64_t to_come)
{
	return icount_clock() - virtual_clock.raised_ns -
	       (int64_t)(to_come << icount.shift);
}

#endif
