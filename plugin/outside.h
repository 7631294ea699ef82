/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outside - what the threads of a user's program do, seen from outside: released, woken,
 * switched in and out, their first own instruction, what they wait for, their calls of
 * the kernel and of functions of the program, page faults. The guest does the same
 * without it. See format/program.md.
 *
 * The program is the process that executes MARKER_OF_PROGRAM of agent/marker.h, and all
 * its descendants. Records are made where certain functions of the kernel begin.
 */
#ifndef OUTSIDE_H
#define OUTSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "arch.h"
#include "options.h"
#include "outsidestate.h"

/* Returns 0 or -errno. */
int outside_init(const struct options *options, const struct arch *arch);

/* Of the first CPU; returns NULL or the register that it lacks. */
const char *outside_registers(void);

/* What begins at an address: 0: nothing. */
unsigned int outside_hook_at(uint64_t address);

/* Whether an address in the lower half is a program's. */
bool outside_is_program(uint64_t address);

/* At the first instruction of a block with so many. */
void outside_at_hook(unsigned int hook, unsigned int instructions);

/* The process that the CPU executes is the program from here on. */
void outside_begin_program(void);

/* Before anything else at a block of a program, if outside_awaits: does not return where
 * a thread is to stand still at its birth. */
void outside_at_possible_birth(unsigned int instructions);

/* At each block of programs, the last two only if outside_awaits. */
void outside_count(unsigned int instructions);
void outside_at_program(uint64_t address, unsigned int instructions);

/* Returns NULL, or why the records are no good. */
const char *outside_end(void);

#endif
