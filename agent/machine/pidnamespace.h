/* SPDX-License-Identifier: MIT */
/* Whether this process numbers threads as the kernel's events do. */
#ifndef PIDNAMESPACE_H
#define PIDNAMESPACE_H

#include <stdbool.h>

/* What is refused elsewhere is so for this reason. */
#define PIDNAMESPACE_REASON "the kernel has other numbers for the threads"
#define PIDNAMESPACE_REMEDY "run outside of the container"

/* Events of the kernel, and their filters, have the numbers of the first namespace of
 * PIDs. In another one the same number is another thread's. True where the kernel knows
 * only one; false if it cannot be known. */
bool pidnamespace_is_first(void);

#endif
