/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outsidecalls - what a program's threads ask the kernel for, and their page faults; which
 * of its functions they call; their stacks there.
 */
#ifndef OUTSIDECALLS_H
#define OUTSIDECALLS_H

#include <stdint.h>

#include "threads.h"

void outsidecalls_at_call(unsigned int to_come);
void outsidecalls_at_fault(unsigned int to_come);

/* At the first instruction of the program behind a call. */
void outsidecalls_at_return(struct thread *t, uint64_t address, unsigned int to_come,
			    uint64_t executed);

/* Where a function of the program begins: its number in options->use. */
void outsidecalls_at_use(unsigned int use, unsigned int to_come);

/* At each instruction of the program that begins a block within such a function. */
void outsidecalls_at_done(struct thread *t, uint64_t address, unsigned int to_come,
			  uint64_t executed);

#endif
