/* SPDX-License-Identifier: MIT */
/* taskline - what was read of one thread, and the line of the contract made of it. */
#ifndef TASKLINE_H
#define TASKLINE_H

#include "host/emit.h"
#include "machine/taskfile.h"
#include "tasks/schedattr.h"

struct taskline {
	int pid, tid;
	struct taskstat stat;
	struct schedattr attr;
	int attr_error;  /* 0 or -errno, like the others below */
	bool agree;      /* stat and attr tell of the same policy */
	bool util_clamp; /* the kernel has clamps */
	const char *status;
	int status_error;
	const char *cgroup; /* NULL: not readable, or a kernel without */
	int64_t timer_slack_ns;
	int slack_error;
	int64_t tick_ns;
	int64_t cpu_time_ns;
	bool cpu_time_exact;
	bool has_window;
	int64_t window_ns, window_cpu_ns;
};

/* The line may leave later, with others. */
void taskline_emit(struct emit *out, const struct taskline *line);

#endif
