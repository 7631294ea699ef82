/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sections - in which section a CPU is that keeps it from switching to another thread.
 *
 * The sections are those of de Oliveira et al., ECRTS 2020, see enum longest_kind. They
 * follow from the interrupt flag, the preemption count and the begins of __schedule
 * and do_idle; the plugin reads them where they may have changed: at the begin of the
 * block behind the instruction that changed them:
 *
 * - A hard interrupt is from the kernel's entry until its bits of the count are zero.
 *   Softirqs and the way out of the interrupt are the thread's that was interrupted.
 * - Preemption was disabled to call the scheduler where the count left zero last before
 *   __schedule. That ends with the count, or, for the idle task, whose count is never
 *   zero, where it comes back to do_idle.
 * - The idle task counts as preemptible, and what it waits for an interrupt as nothing.
 */
#ifndef SECTIONS_H
#define SECTIONS_H

#include "arch.h"
#include "blocks.h"
#include "cpus.h"
#include "options.h"

/* While a CPU is being added. */
void sections_init(const struct arch *arch, const struct options *options);

void sections_at_block(struct cpu *cpu, const struct block *block);

/* The thread that this CPU runs measures it. */
void sections_at_mark(const struct cpu *cpu);

#endif
