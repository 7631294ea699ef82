/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "paths.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cpus.h"
#include "ring.h"
#include "tasks.h"

/* Before interrupts went off: who called what did it. */
#define OFF_LEAD_NS 2000

/* Whether interrupts were enabled before a record of the ring. */
static void enabled_before(uint64_t from, bool enabled[CPUS_MAX])
{
	for (unsigned int i = 0; i < cpus.count; i++)
		enabled[i] = cpus.cpu[i].interrupts;
	for (uint64_t i = ring.head; i-- > from;)
		if (record_kind(ring_get(i)) == RECORD_INTERRUPTS)
			enabled[record_cpu(ring_get(i))] = !ring_get(i)->value;
}

/* The state that each CPU had before the records, which have only its changes. */
static unsigned int first_state(uint64_t from, uint64_t begin_ns,
				struct record out[CPUS_MAX])
{
	bool enabled[CPUS_MAX];
	unsigned int n = 0;

	enabled_before(from, enabled);
	for (; n < cpus.count; n++)
		out[n] = record_make(RECORD_INTERRUPTS, n, begin_ns, enabled[n]);
	return n;
}

static unsigned int copy_task(uint64_t from, uint64_t at, struct record *out)
{
	unsigned int cpu = record_cpu(ring_get(from)), n = 0;

	for (uint64_t i = from; i < from + TASKS_RECORDS && i < ring.head; i++)
		if (i == from || record_kind(ring_get(i)) == RECORD_NAME ||
		    record_kind(ring_get(i)) == RECORD_PRIORITY)
			out[n++] = record_make(record_kind(ring_get(i)), cpu, at,
					       ring_get(i)->value);
	return n;
}

static bool is_rename(uint64_t at, uint64_t task)
{
	return record_kind(ring_get(at)) == RECORD_RENAMED &&
	       ring_get(at)->value == task;
}

/* A name that was given behind the begin of the path, or before it and after the task's
 * record, `told`: what it was until the first, or from the last on. */
static void set_name(uint64_t from, uint64_t told, struct record *out, unsigned int n)
{
	uint64_t name = 0;

	if (n < 3 || record_kind(&out[2]) != RECORD_NAME)
		return;
	for (uint64_t i = from; i < ring.head && !name; i++)
		if (is_rename(i, out[0].value))
			name = i + 1;
	for (uint64_t i = from; i-- > told && !name;)
		if (is_rename(i, out[0].value))
			name = i + 3;
	if (!name)
		return;
	out[1].value = ring_get(name)->value;
	out[2].value = ring_get(name + 1)->value;
}

/* What has to be looked for of the task that each CPU ran at the begin of a path. */
struct first {
	bool switches;               /* to another one, later */
	const struct record *change; /* of its priority: the next, else the last */
};

/* A priority that changed between a task's record and the path, or behind its begin. */
static void set_priority(const struct record *change, bool before, struct record *out,
			 unsigned int n)
{
	for (unsigned int i = 0; change && i < n; i++)
		if (record_kind(&out[i]) == RECORD_PRIORITY)
			out[i].value =
				before ? (uint32_t)change->value : change->value >> 32;
}

/* The task that each CPU ran before it switched to another, as far as the ring tells. */
static unsigned int first_tasks(uint64_t from, uint64_t begin_ns, struct record *out)
{
	struct first first[CPUS_MAX] = { { false, NULL } };
	uint64_t oldest = ring_oldest();
	unsigned int n = 0, told;

	for (uint64_t i = from; i < ring.head; i++) {
		const struct record *r = ring_get(i);
		struct first *one = &first[record_cpu(r)];

		one->switches |= record_kind(r) == RECORD_TASK;
		if (record_kind(r) == RECORD_CHANGE && !one->switches && !one->change)
			one->change = r;
	}
	for (unsigned int i = 0; i < cpus.count; i++) {
		if (first[i].switches) {
			first[i].change = NULL;
			continue;
		}
		told = tasks_last(i, begin_ns, out + n);
		set_priority(first[i].change, false, out + n, told);
		set_name(from, from, out + n, told);
		n += told;
	}
	for (uint64_t i = from; i-- > oldest;) {
		const struct record *r = ring_get(i);
		struct first *one = &first[record_cpu(r)];

		if (!one->switches)
			continue;
		if (record_kind(r) == RECORD_CHANGE && !one->change)
			one->change = r;
		if (record_kind(r) != RECORD_TASK)
			continue;
		one->switches = false;
		told = copy_task(i, begin_ns, out + n);
		set_priority(one->change, true, out + n, told);
		set_name(from, i, out + n, told);
		n += told;
	}
	return n;
}

static uint64_t earliest_ns(uint64_t from)
{
	uint64_t ns = record_at_ns(ring_get(from));

	for (uint64_t i = from; i < ring.head; i++)
		if (record_at_ns(ring_get(i)) < ns)
			ns = record_at_ns(ring_get(i));
	return ns;
}

/* A CPU that looks at memory in a loop pauses too, for as long as the disorder. */
static bool slept(const struct record *r, uint64_t next_ns)
{
	return record_kind(r) == RECORD_PAUSE &&
	       next_ns > record_at_ns(r) + clock_disorder_ns();
}

uint64_t paths_since_off(uint64_t at_ns, uint64_t most_ns)
{
	uint64_t begin_ns = at_ns, i = ring_find(at_ns, clock_disorder_ns());
	uint64_t next_ns[CPUS_MAX];
	bool known[CPUS_MAX]; /* or enabled: nothing is to be known */

	enabled_before(i, known);
	for (unsigned int cpu = 0; cpu < cpus.count; cpu++)
		next_ns[cpu] = at_ns;
	while (i-- > ring_oldest() && record_at_ns(ring_get(i)) + most_ns > at_ns) {
		const struct record *r = ring_get(i);
		unsigned int cpu = record_cpu(r);
		uint64_t off_ns = record_at_ns(r);
		uint64_t since_ns = off_ns > OFF_LEAD_NS ? off_ns - OFF_LEAD_NS : 0;

		if (known[cpu])
			continue;
		if (record_kind(r) == RECORD_INTERRUPTS && since_ns < begin_ns)
			begin_ns = since_ns;
		known[cpu] =
			record_kind(r) == RECORD_INTERRUPTS || slept(r, next_ns[cpu]);
		next_ns[cpu] = off_ns;
	}
	return begin_ns;
}

bool paths_copy(struct section section, struct path *out)
{
	uint64_t from = ring_find(section.first, clock_disorder_ns());
	bool cut = from && from + ring.mask + 1 == ring.head;
	uint64_t begin_ns = earliest_ns(from);
	struct record before[CPUS_MAX * (1 + TASKS_RECORDS)];
	unsigned int n = first_state(from, begin_ns, before);

	n += first_tasks(from, begin_ns, before + n);
	/* Without a record all CPUs slept. */
	section.first = cut || begin_ns < section.first ? begin_ns : section.first;
	section.records = n + ring.head - from;
	section.flags = cut ? SECTION_CUT : 0;
	out->section = section;
	out->record = malloc(section.records * sizeof(struct record));
	if (!out->record)
		return false;
	memcpy(out->record, before, n * sizeof(struct record));
	for (uint64_t i = from; i < ring.head; i++)
		out->record[n++] = *ring_get(i);
	return true;
}
