/* SPDX-License-Identifier: MIT */
/*
 * counters - interrupts, softirqs and CPU times of the machine, before and after a run.
 *
 * Snapshots are taken by the supervisor when no sampler runs; reports are differences.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#include "host/emit.h"

/* The text of one of the kernel's files, NUL-terminated; size 0 if it was not readable. */
struct snapshot {
	char *text;
	size_t size;
};

/* Reads a file of any size. Returns 0 or -errno. */
int snapshot_take(const char *path, struct snapshot *out);

/* The same from an open file, which stays open. */
int snapshot_read(int fd, struct snapshot *out);
void snapshot_free(struct snapshot *s);

/*
 * Emits the list `key` with what changed between two snapshots of /proc/interrupts or
 * /proc/softirqs: [{id, name, per_cpu: {cpu: count}}]; rows and CPUs without a change
 * are left out, since nothing happened there. A row that counts for the machine as a
 * whole (ERR, MIS) has an empty per_cpu when it changed.
 */
void counters_emit_delta(struct emit *e, const char *key, const struct snapshot *before,
			 const struct snapshot *after);

/* Emits `cpu_times` from two snapshots of /proc/stat. */
void counters_emit_cpu_times(struct emit *e, const struct snapshot *before,
			     const struct snapshot *after);

/* How often the machine has changed tasks between two snapshots of /proc/stat; -1: it does
 * not tell. */
int64_t counters_switches(const struct snapshot *before, const struct snapshot *after);

/* Emits `runs` from two snapshots of /proc/schedstat: per CPU how often a task was put on
 * it, how long tasks ran there, and how long they waited for it, all together. */
void counters_emit_runs(struct emit *e, const struct snapshot *before,
			const struct snapshot *after);

#endif
