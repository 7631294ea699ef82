/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * longest - the longest section of each kind on each CPU, with the path that it took,
 * and all interrupts: as long as the CPU was measured, and not after.
 *
 * The measuring is over before its thread exits. So what happens is kept only when the
 * thread marks a wake-up or goes to sleep behind it.
 */
#ifndef LONGEST_H
#define LONGEST_H

#include <stdint.h>

#include "trace.h"

/* As in the file: see format/plugin.md. */
enum longest_kind {
	LONGEST_POID = 1, /* preemption or interrupts off, not to call the scheduler */
	LONGEST_PAIE,     /* neither off, a switch due, the scheduler not yet called */
	LONGEST_PSD,      /* preemption off to call the scheduler */
	LONGEST_ST,       /* of it, from interrupts off for the switch */
	LONGEST_BACK,     /* the measuring thread, from there to its mark or sleep */
	LONGEST_KINDS,
};

struct stretch {
	uint64_t began_ns, ended_ns;
	uint64_t interrupted_ns; /* of it, in interrupts */
};

/* Nothing that was before counts. */
void longest_begin(unsigned int cpu);

void longest_offer(unsigned int cpu, enum longest_kind kind, struct stretch stretch);
void longest_interrupt(unsigned int cpu, uint64_t vector, struct stretch stretch);

/* The CPU is still measured: what was offered counts. */
void longest_keep(unsigned int cpu);

/* Of all measured CPUs; to be asked once, at the end. */
unsigned int longest_count(void);
const struct path *longest_path(unsigned int i);

#endif
