/* SPDX-License-Identifier: MIT */
/*
 * start - becomes a program that has its policy, CPUs, limits and locked memory.
 *
 * Everything is set on this process and read back from the kernel before the exec; what
 * the kernel refuses ends it in words, on standard error, before the program begins.
 */
#ifndef START_H
#define START_H

#include "options.h"

/* Returns only if the program was not started: an exit status. */
int start(const struct options *o);

#endif
