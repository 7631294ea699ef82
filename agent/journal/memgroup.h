/* SPDX-License-Identifier: MIT */
/*
 * memgroup - a memory cgroup of bounded size, for the load that runs out of memory.
 *
 * cgroup v2 and v1; the group is named after the process that made it, so that whoever
 * cleans up needs no path.
 */
#ifndef MEMGROUP_H
#define MEMGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Makes the group of `owner` with the limit (bytes, decimal). 0 or -errno. */
int memgroup_make(int owner, const char *limit);

bool memgroup_exists(int owner);

/* Moves the calling process into it. 0 or -errno. */
int memgroup_enter(int owner);

/* How many processes the kernel has killed in it for want of memory; -1 if unknown. */
int64_t memgroup_oom_kills(int owner);

/* Kills what is left in it and removes it; 0 also when there is none. */
int memgroup_remove(int owner);

#endif
