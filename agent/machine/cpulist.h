/* SPDX-License-Identifier: MIT */
/*
 * cpulist - sets of CPUs, read and written as the kernel does: "0-3,8".
 *
 * A set has a fixed size, so that it can live in locked memory and needs no clean-up.
 */
#ifndef CPULIST_H
#define CPULIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPULIST_MAX_CPUS 1024
#define CPULIST_TEXT_MAX 4096 /* every second of 1024 CPUs, written out */

struct cpulist {
	uint64_t word[CPULIST_MAX_CPUS / 64];
};

/* Returns 0, -EINVAL for bad syntax or an empty list, -ERANGE for a CPU too high. */
int cpulist_parse(const char *text, struct cpulist *out);

/* Writes at most size bytes with the final NUL; the text is "" for an empty set. */
void cpulist_format(const struct cpulist *set, char *text, size_t size);

void cpulist_add(struct cpulist *set, unsigned int cpu);
bool cpulist_has(const struct cpulist *set, unsigned int cpu);
unsigned int cpulist_count(const struct cpulist *set);

/* Returns the first CPU >= from, or -1 if there is none. */
int cpulist_next(const struct cpulist *set, unsigned int from);

/* Removes from set what is in other. */
void cpulist_subtract(struct cpulist *set, const struct cpulist *other);
bool cpulist_equal(const struct cpulist *a, const struct cpulist *b);

/* The calling thread's affinity. Both return 0 or -errno. */
int cpulist_get_affinity(struct cpulist *out);
int cpulist_set_affinity(const struct cpulist *set);

/* Where the calling thread runs, and where it might: with isolcpus= every process begins
 * on the other CPUs, and may go to those all the same. Returns 0 or -errno. */
int cpulist_find_reachable(struct cpulist *usable, struct cpulist *reachable);

#endif
