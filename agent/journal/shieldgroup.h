/* SPDX-License-Identifier: MIT */
/*
 * shieldgroup - a control group that has CPUs for itself: a cpuset partition.
 *
 * cgroup v2 alone. There is one for the whole machine, below its root group; the kernel
 * moves every other task off its CPUs that it may move. `root` is "" for the real machine.
 */
#ifndef SHIELDGROUP_H
#define SHIELDGROUP_H

#include <errno.h>
#include <stdbool.h>

#define SHIELDGROUP_ROOT    "/sys/fs/cgroup"
#define SHIELDGROUP_PATH    SHIELDGROUP_ROOT "/rtscope.shield"
#define SHIELDGROUP_INVALID (-EUCLEAN) /* made, and the kernel says that it is none */

/* Whether the root group gives the groups below it CPU sets: 1 or 0, or -errno. */
int shieldgroup_has_cpusets(const char *root);

/* 0 or -errno. */
int shieldgroup_set_cpusets(const char *root, bool on);

bool shieldgroup_exists(const char *root);

/* Makes the group with these CPUs, isolated where the kernel has that, else a root of
 * scheduling; reads both back. On failure there is no group. 0, -errno or
 * SHIELDGROUP_INVALID. */
int shieldgroup_make(const char *root, const char *cpus);

/* What the kernel answered that made it SHIELDGROUP_INVALID. */
const char *shieldgroup_answer(void);

/* Moves the calling process into it. 0 or -errno. */
int shieldgroup_enter(const char *root);

/* Moves what is left in it to the root group, and removes it; 0 also when there is
 * none. */
int shieldgroup_remove(const char *root);

#endif
