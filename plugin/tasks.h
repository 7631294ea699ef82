/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tasks - which task a CPU runs, by name, recorded where the kernel switches to it.
 *
 * A task's name lies in its task_struct, at an offset that each kernel has of its own:
 * it is found by looking for the name of the first task, "swapper", in that one. So does
 * its priority, of which that task has three equal ones. The kernel may change that
 * while the task runs: by itself, from another CPU, or to lend it another's; and a task
 * may get another name at any time.
 */
#ifndef TASKS_H
#define TASKS_H

#include <stdint.h>

#include "cpus.h"
#include "options.h"
#include "record.h"

#define TASKS_RECORDS 4
#define TASKS_RENAME  5

void tasks_init(const struct options *options);

/* Writes the records of the current task, and returns their number: none if the task
 * cannot be read. */
unsigned int tasks_tell(unsigned int cpu, uint64_t at,
			struct record out[TASKS_RECORDS]);

/* Writes a record for each CPU whose task has another priority than was told, and
 * returns their number. The kernel changes it with interrupts off. */
unsigned int tasks_tell_changes(uint64_t at, struct record out[CPUS_MAX]);

/* Writes the records of the name that a task, of whichever CPU or none, is about to get,
 * and returns their number: none if it has that name. */
unsigned int tasks_tell_rename(unsigned int cpu, uint64_t at,
			       struct record out[TASKS_RENAME]);

/* The records that were written last for a CPU; none if there were none. */
unsigned int tasks_last(unsigned int cpu, uint64_t at,
			struct record out[TASKS_RECORDS]);

#endif
