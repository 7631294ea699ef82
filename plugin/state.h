/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * state - what a CPU's state is when a block begins, and records of its changes.
 *
 * Reading a register costs as much as executing ten blocks. Outside of windows only the
 * interrupt-enable flag is read, and only where it may have changed: before blocks that
 * hold an entry of the kernel, and after those that may switch it. In a window everything
 * is read before each block of the kernel.
 */
#ifndef STATE_H
#define STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "arch.h"
#include "cpus.h"
#include "options.h"
#include "record.h"

/* While a CPU is being added. Returns NULL, or the register that the CPU lacks. */
const char *state_init(const struct arch *arch, const struct options *options);

#define STATE_CHANGES 3

/* Writes the changes since the last call and returns their number. */
unsigned int state_look_at_interrupts(struct cpu *cpu, struct record *out);
unsigned int state_look_at_kernel(struct cpu *cpu, uint64_t address,
				  struct record *out);

/* False: nothing that the kernel keeps can be read now, and `out` means nothing. */
bool state_read_task(uint64_t *out);
bool state_read_count(uint64_t *out);

/* An argument, of the first STATE_ARGUMENTS and a pointer of the kernel's, of the function
 * that begins here. */
#define STATE_ARGUMENTS 2
bool state_read_argument(unsigned int number, uint64_t *out);

#endif
