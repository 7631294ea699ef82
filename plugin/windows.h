/* SPDX-License-Identifier: GPL-2.0-or-later */
/* windows - everything that happened between two virtual times. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "trace.h"

void windows_init(const struct options *options);

/* Whether a block that begins at this time is in a window. No CPU that executes is
 * before `now_ns`. */
bool windows_contain(uint64_t at_ns, uint64_t now_ns);

/* These are about the window that contains the last time asked for. */
bool windows_is_empty(void);
void windows_add(struct record r);

unsigned int windows_count(void);
const struct path *windows_path(unsigned int i);

#endif
