/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * code - which code of its own each thread of a program executes between two of its
 * calls of the kernel: pieces, each with how often it began which block. See
 * format/code.md.
 *
 * Equal pieces are written once, so that a loop which does the same in each cycle takes
 * 16 bytes for a cycle.
 */
#ifndef CODE_H
#define CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "blocks.h"

/* Returns 0 or -errno. */
int code_init(const char *path, uint64_t most);

/* Counts what the executing CPU executes in programs from here on, or no more. */
void code_count(bool of_program);

void code_at_block(const struct block *block);

/* What the CPU has counted is a piece of this thread, which ends here. */
void code_end_piece(uint32_t thread, unsigned int to_come);

/* Returns whether all was written. */
bool code_end(void);

#endif
