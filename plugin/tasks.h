/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tasks - which task a CPU runs, by name, told where the kernel has switched to it.
 *
 * A task's name lies in its task_struct, at an offset that each kernel has of its own:
 * it is found by looking for the name of the first task, "swapper", in that one.
 */
#ifndef TASKS_H
#define TASKS_H

#include <stdint.h>

#include "options.h"
#include "record.h"

#define TASKS_RECORDS 3

void tasks_init(const struct options *options);

/* Writes what tells the current task, and returns how many records that are: none if
 * it cannot be read. */
unsigned int tasks_tell(unsigned int cpu, uint64_t at,
			struct record out[TASKS_RECORDS]);

/* The same as was told last for a CPU; none if nothing was. */
unsigned int tasks_last(unsigned int cpu, uint64_t at,
			struct record out[TASKS_RECORDS]);

#endif
