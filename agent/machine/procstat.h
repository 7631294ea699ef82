/* SPDX-License-Identifier: MIT */
/* procstat - the fields of /proc/PID/stat that the agent needs. */
#ifndef PROCSTAT_H
#define PROCSTAT_H

#include <stdint.h>

struct procstat {
	int pid;
	int parent;
	char state;
	unsigned long flags;
	int64_t cpu_ticks;      /* user + system */
	int64_t children_ticks; /* of children that were waited for */
	int64_t started_ticks; /* since the machine booted: tells two of one pid apart */
	int cpu;               /* where it ran last */
	char name[64];
};

/* Returns 0 or -errno (-ESRCH when the process is gone). */
int procstat_read(int pid, struct procstat *out);

/* The same from the text of the file; -EINVAL if it is none. */
int procstat_parse(const char *text, struct procstat *out);

#endif
