/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "paths.h"

#include <stdlib.h>
#include <string.h>

#include "cpus.h"
#include "ring.h"

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

bool paths_copy(struct section section, struct path *out)
{
	uint64_t from = ring_find(section.first);
	struct record before[CPUS_MAX];
	unsigned int n = first_state(from, before);

	section.first = record_at(ring_get(from));
	section.records = n + ring.head - from;
	section.flags = from && from + ring.mask + 1 == ring.head ? SECTION_CUT : 0;
	out->section = section;
	out->record = malloc(section.records * sizeof(struct record));
	if (!out->record)
		return false;
	memcpy(out->record, before, n * sizeof(struct record));
	for (uint64_t i = from; i < ring.head; i++)
		out->record[n++] = *ring_get(i);
	return true;
}
