/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * uses - functions of programs, found by what is in their page of memory.
 *
 * A page of code is as it is in its file, wherever a process has it. So the place in the
 * page, and a sum of all its content, tell a function in each process, in libraries that
 * are loaded later too. Where code is translated that is looked for, once.
 */
#ifndef USES_H
#define USES_H

#include <stdint.h>

#include "options.h"

/* The function that begins at an address of the program: 1 for the first; 0: none. */
unsigned int uses_at(const struct options *options, uint64_t address);

#endif
