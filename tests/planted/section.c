/* SPDX-License-Identifier: MIT */
/*
 * section - a system call that is a critical section of a known length.
 *
 * It takes the place of another one in the image of a riscv64 kernel: no kernel is
 * built, and one without modules can have it. The length is counted in instructions, not
 * read from a clock, so that it does not depend on the clocks that it is to prove.
 *
 * From outside: LOCK_IRQSAVE and UNLOCK_IRQRESTORE are functions of that kernel, STATE
 * is a part of its memory that is zero and that nothing uses. It must not need another
 * section of the object file: the bytes of this function are all that is placed.
 */
#include <stdint.h>

#include "section.h"

#define ORIG_A0 35 /* of struct pt_regs, in words: arch/riscv/include/asm/ptrace.h */
#define A1      11

struct state {
	uint32_t lock; /* a raw_spinlock_t */
	uint32_t waiting, held;
};

static inline __attribute__((always_inline)) void count(uint64_t us)
{
	uint64_t rounds = us * ROUNDS_PER_US;

	__asm__ volatile("1: addi %0, %0, -1\n\tbnez %0, 1b" : "+r"(rounds));
}

static inline __attribute__((always_inline)) void without_preemption(uint64_t us)
{
	/* thread_info.preempt_count; a switch that is due then comes with the return. */
	__asm__ volatile("lw t0, 8(tp)\n\taddiw t0, t0, 1\n\tsw t0, 8(tp)" ::
				 : "t0", "memory");
	count(us);
	__asm__ volatile("lw t0, 8(tp)\n\taddiw t0, t0, -1\n\tsw t0, 8(tp)" ::
				 : "t0", "memory");
}

static inline __attribute__((always_inline)) uint64_t lock(uint32_t *at)
{
	return ((uint64_t (*)(uint32_t *))LOCK_IRQSAVE)(at);
}

static inline __attribute__((always_inline)) void unlock(uint32_t *at, uint64_t flags)
{
	((void (*)(uint32_t *, uint64_t))UNLOCK_IRQRESTORE)(at, flags);
}

static inline __attribute__((always_inline)) int came(volatile uint32_t *flag)
{
	for (uint32_t n = 0; n < PATIENCE_ROUNDS; n++)
		if (*flag)
			return 1;
	return 0;
}

/* The arguments of the system call: what to do, and for how many us. */
long section(const uint64_t *regs)
{
	volatile struct state *state = (volatile struct state *)STATE;
	uint64_t us = regs[A1];
	uint64_t flags;

	switch (regs[ORIG_A0]) {
	case PREEMPTION_OFF:
		without_preemption(us);
		return PLANTED;
	case LOCK_HELD:
		state->waiting = 0;
		if (!came(&state->waiting))
			return 0;
		flags = lock((uint32_t *)&state->lock);
		state->held = 1;
		count(us);
		unlock((uint32_t *)&state->lock, flags);
		return PLANTED;
	case LOCK_WAITED_FOR:
		state->held = 0;
		state->waiting = 1;
		if (!came(&state->held))
			return 0;
		flags = lock((uint32_t *)&state->lock);
		unlock((uint32_t *)&state->lock, flags);
		return PLANTED;
	}
	return 0;
}
