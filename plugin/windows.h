/* SPDX-License-Identifier: GPL-2.0-or-later */
/* windows - everything that happened between two instruction counts. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "trace.h"

void windows_init(const struct options *options);

/* Whether a block that begins at this instruction count is in a window. Counts must not
 * go back from one call to the next. */
bool windows_contain(uint64_t at);

/* These are about the window that contains the last count asked for. */
bool windows_is_empty(void);
void windows_add(struct record r);

unsigned int windows_count(void);
const struct path *windows_path(unsigned int i);

#endif
