/* SPDX-License-Identifier: MIT */
#include "machine/cpulist.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void cpulist_add(struct cpulist *set, unsigned int cpu)
{
	if (cpu < CPULIST_MAX_CPUS)
		set->word[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

bool cpulist_has(const struct cpulist *set, unsigned int cpu)
{
	return cpu < CPULIST_MAX_CPUS && (set->word[cpu / 64] >> (cpu % 64) & 1);
}

unsigned int cpulist_count(const struct cpulist *set)
{
	unsigned int count = 0;

	/* not by words: unrolled, that is a kilobyte where no instruction counts bits */
	for (unsigned int cpu = 0; cpu < CPULIST_MAX_CPUS; cpu++)
		count += cpulist_has(set, cpu);
	return count;
}

int cpulist_next(const struct cpulist *set, unsigned int from)
{
	for (unsigned int cpu = from; cpu < CPULIST_MAX_CPUS; cpu++)
		if (cpulist_has(set, cpu))
			return (int)cpu;
	return -1;
}

void cpulist_subtract(struct cpulist *set, const struct cpulist *other)
{
	for (unsigned int i = 0; i < CPULIST_MAX_CPUS / 64; i++)
		set->word[i] &= ~other->word[i];
}

bool cpulist_equal(const struct cpulist *a, const struct cpulist *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Reads one number and moves past it; strtoul alone would take signs and spaces. */
static int parse_cpu(const char **text, unsigned long *cpu)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;

	errno = 0;
	*cpu = strtoul(*text, &end, 10);
	if (errno || *cpu >= CPULIST_MAX_CPUS)
		return -ERANGE;

	*text = end;
	return 0;
}

static int parse_range(const char **text, struct cpulist *out)
{
	unsigned long first, last;
	int err = parse_cpu(text, &first);

	if (err)
		return err;

	last = first;
	if (**text == '-') {
		(*text)++;
		err = parse_cpu(text, &last);
		if (err)
			return err;
		if (last < first)
			return -EINVAL;
	}

	for (unsigned long cpu = first; cpu <= last; cpu++)
		cpulist_add(out, (unsigned int)cpu);
	return 0;
}

int cpulist_parse(const char *text, struct cpulist *out)
{
	struct cpulist set = { 0 };

	for (;;) {
		int err = parse_range(&text, &set);

		if (err)
			return err;
		if (*text == '\n' || *text == '\0')
			break;
		if (*text++ != ',')
			return -EINVAL;
	}

	*out = set;
	return 0;
}

void cpulist_format(const struct cpulist *set, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int first = cpulist_next(set, 0); first >= 0;) {
		int last = first;
		int written;

		while (cpulist_has(set, (unsigned int)last + 1))
			last++;

		written = first == last ? snprintf(text + used, size - used, "%s%d",
						   used ? "," : "", first)
					: snprintf(text + used, size - used, "%s%d-%d",
						   used ? "," : "", first, last);
		if (written < 0 || (size_t)written >= size - used) {
			text[used] = '\0';
			return;
		}
		used += (size_t)written;
		first = cpulist_next(set, (unsigned int)last + 1);
	}
}

/* Raw system calls: one size for every libc, and sets beyond glibc's cpu_set_t. */
int cpulist_get_affinity(struct cpulist *out)
{
	unsigned long mask[CPULIST_MAX_CPUS / (8 * sizeof(unsigned long))] = { 0 };
	const unsigned int bits = 8 * sizeof(unsigned long);

	*out = (struct cpulist){ 0 };
	if (syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask) < 0)
		return -errno;

	for (unsigned int cpu = 0; cpu < CPULIST_MAX_CPUS; cpu++)
		if (mask[cpu / bits] >> (cpu % bits) & 1)
			cpulist_add(out, cpu);
	return 0;
}

int cpulist_set_affinity(const struct cpulist *set)
{
	unsigned long mask[CPULIST_MAX_CPUS / (8 * sizeof(unsigned long))] = { 0 };
	const unsigned int bits = 8 * sizeof(unsigned long);

	for (unsigned int cpu = 0; cpu < CPULIST_MAX_CPUS; cpu++)
		if (cpulist_has(set, cpu))
			mask[cpu / bits] |= 1UL << (cpu % bits);

	return syscall(SYS_sched_setaffinity, 0, sizeof(mask), mask) < 0 ? -errno : 0;
}

int cpulist_find_reachable(struct cpulist *usable, struct cpulist *reachable)
{
	struct cpulist all = { 0 };
	int err = cpulist_get_affinity(usable);

	if (err)
		return err;
	for (unsigned int cpu = 0; cpu < CPULIST_MAX_CPUS; cpu++)
		cpulist_add(&all, cpu);
	*reachable = *usable;
	if (cpulist_set_affinity(&all) < 0)
		return 0;
	err = cpulist_get_affinity(reachable);
	cpulist_set_affinity(usable);
	return err;
}
