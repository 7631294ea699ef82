/* SPDX-License-Identifier: MIT */
/* taskfile - the fields of /proc/PID/task/TID/{stat,status,schedstat,cgroup} that `tasks`
 * needs. */
#ifndef TASKFILE_H
#define TASKFILE_H

#include <stddef.h>
#include <stdint.h>

struct taskstat {
	const char *name; /* points into the text; any bytes, no NUL at its end */
	size_t name_size;
	char state;
	unsigned long flags;
	int64_t minor_faults, major_faults;
	int64_t user_ticks, system_ticks;
	int effective; /* the kernel's priority less 100: -100 and below is a deadline's */
	int nice;
	int64_t threads;     /* of its process */
	int64_t start_ticks; /* since boot */
	int last_cpu;
	unsigned int priority, policy;
};

/* Returns 0, or -EINVAL if the text is not that of a stat file. */
int taskstat_parse(const char *text, struct taskstat *out);

/* The value of a line "KEY:\tVALUE" of a status file, without its end; NULL if there is
 * no such line. The kernel writes a newline in a name as two characters, so that a name
 * cannot pretend to be a line. */
const char *taskstatus_find(const char *text, const char *key, size_t *size);

/* The path in a cgroup file: of the hierarchy with the controller cpu, which schedules,
 * else of version 2's; NULL if there is neither. */
const char *taskcgroup_find(const char *text, size_t *size);

/* The CPU time of a schedstat file; -EINVAL where the kernel does not keep it and writes
 * zeros (TASK_DELAY_ACCT without SCHEDSTATS and without the boot option delayacct). */
int taskschedstat_parse(const char *text, int64_t *cpu_time_ns);

#endif
