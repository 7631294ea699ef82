/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worst.h"

#include <stdlib.h>
#include <string.h>

#include "cpus.h"
#include "options.h"
#include "ring.h"
#include "tasks.h"

/* Before the expiry: what the CPU did then may have caused the delay. */
#define LEAD_INSTRUCTIONS 20000

static struct {
	unsigned int limit, count, shift;
	uint64_t room;
	struct path path[OPTIONS_WORST]; /* worst first */
} worst;

void worst_init(unsigned int limit, unsigned int shift, uint64_t room)
{
	worst.limit = limit;
	worst.shift = shift;
	worst.room = room;
}

/* The state that each CPU had before the records, which have only its changes. */
static unsigned int first_state(uint64_t from, struct record out[CPUS_MAX])
{
	bool enabled[CPUS_MAX];
	unsigned int n = 0;

	for (unsigned int i = 0; i < cpus.count; i++)
		enabled[i] = cpus.cpu[i].interrupts;
	for (uint64_t i = ring.head; i-- > from;)
		if (record_kind(ring_get(i)) == RECORD_INTERRUPTS)
			enabled[record_cpu(ring_get(i))] = !ring_get(i)->value;
	for (; n < cpus.count; n++)
		out[n] = record_make(RECORD_INTERRUPTS, n, record_at(ring_get(from)),
				     enabled[n]);
	return n;
}

static unsigned int copy_task(uint64_t from, uint64_t at, struct record *out)
{
	unsigned int cpu = record_cpu(ring_get(from)), n = 0;

	for (uint64_t i = from; i < from + TASKS_RECORDS && i < ring.head; i++)
		if (i == from || record_kind(ring_get(i)) == RECORD_NAME)
			out[n++] = record_make(record_kind(ring_get(i)), cpu, at,
					       ring_get(i)->value);
	return n;
}

/* The task that each CPU ran before it switched to another, as far as the ring tells. */
static unsigned int first_tasks(uint64_t from, struct record *out)
{
	uint64_t oldest = ring.head > ring.mask ? ring.head - ring.mask - 1 : 0;
	uint64_t begin = record_at(ring_get(from));
	bool switches[CPUS_MAX] = { false };
	unsigned int n = 0;

	for (uint64_t i = from; i < ring.head; i++)
		if (record_kind(ring_get(i)) == RECORD_TASK)
			switches[record_cpu(ring_get(i))] = true;
	for (unsigned int i = 0; i < cpus.count; i++)
		if (!switches[i])
			n += tasks_last(i, begin, out + n);
	for (uint64_t i = from; i-- > oldest;) {
		const struct record *r = ring_get(i);

		if (record_kind(r) != RECORD_TASK || !switches[record_cpu(r)])
			continue;
		switches[record_cpu(r)] = false;
		n += copy_task(i, begin, out + n);
	}
	return n;
}

/* False: no memory; the wake-up is not kept. */
static bool copy_path(const struct mark *mark, struct path *path)
{
	uint64_t back = (mark->latency_ns >> worst.shift) + LEAD_INSTRUCTIONS;
	uint64_t first = mark->at > back ? mark->at - back : 0;
	uint64_t from = ring_find(first);
	struct record before[CPUS_MAX * (1 + TASKS_RECORDS)];
	unsigned int n = first_state(from, before);

	n += first_tasks(from, before + n);
	path->section = (struct section){
		.kind = SECTION_WORST,
		.cpu = mark->cpu,
		.latency_ns = mark->latency_ns,
		.sequence = mark->sequence,
		.first = record_at(ring_get(from)),
		.last = mark->at,
		.records = n + ring.head - from,
		.flags = from && from + ring.mask + 1 == ring.head ? SECTION_CUT : 0,
	};
	path->record = malloc(path->section.records * sizeof(struct record));
	if (!path->record)
		return false;
	memcpy(path->record, before, n * sizeof(struct record));
	for (uint64_t i = from; i < ring.head; i++)
		path->record[n++] = *ring_get(i);
	return true;
}

static void keep_to_the_room(void)
{
	uint64_t records = 0;

	for (unsigned int i = 0; i < worst.count; i++) {
		struct path *path = &worst.path[i];

		records += path->section.records;
		if (records <= worst.room)
			continue;
		records -= path->section.records;
		free(path->record);
		path->record = NULL;
		path->section.records = 0;
		path->section.flags |= SECTION_LEFT_OUT;
	}
}

void worst_offer(const struct mark *mark)
{
	struct path path;
	unsigned int place = worst.count;

	while (place && worst.path[place - 1].section.latency_ns < mark->latency_ns)
		place--;
	if (place == worst.limit || !copy_path(mark, &path))
		return;
	if (worst.count == worst.limit)
		free(worst.path[--worst.count].record);
	memmove(&worst.path[place + 1], &worst.path[place],
		(worst.count - place) * sizeof(path));
	worst.path[place] = path;
	worst.count++;
	keep_to_the_room();
}

unsigned int worst_count(void)
{
	return worst.count;
}

const struct path *worst_path(unsigned int i)
{
	return &worst.path[i];
}
