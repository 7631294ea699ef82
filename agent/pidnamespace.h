/* SPDX-License-Identifier: MIT */
/* Whether this process numbers threads as the kernel's events do. */
#ifndef PIDNAMESPACE_H
#define PIDNAMESPACE_H

#include <stdbool.h>

/* Events of the kernel, and their filters, have the numbers of the first namespace of
 * PIDs. In another one the same number is another thread's. False also if it cannot be
 * known. */
bool pidnamespace_is_first(void);

#endif
