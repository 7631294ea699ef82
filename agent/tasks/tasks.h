/* SPDX-License-Identifier: MIT */
/*
 * tasks - every thread of the machine, with what the kernel says about its scheduling.
 *
 * One pass over /proc without a process of its own for any thread. Nothing is changed. A
 * thread that ends while it is read is counted and left out; what may not be read is
 * null, with the system's reason.
 */
#ifndef TASKS_H
#define TASKS_H

#include "host/emit.h"
#include "options.h"
#include "tasks/schedattr.h"

/* Where the answers come from; a test has its own. */
struct tasks_source {
	const char *proc;
	const char *util_clamp; /* a file that is there if the kernel has clamps */
	int (*get_attr)(int tid, struct schedattr *out);
};

/* Emits a `task` line for each thread and `tasks_end`; with a window, also what each
 * used in it. EXIT_DONE, or another after an error line. */
enum exit_status tasks_list(const struct tasks_source *source, struct options *options,
			    struct emit *out);

/* The same for this machine; what `tasks` runs. */
enum exit_status tasks(struct options *options, struct emit *out);

#endif
