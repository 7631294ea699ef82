/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "worst.h"

#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "paths.h"

/* Before the expiry: what the CPU did then may have caused the delay. A function that has
 * jumped to another is recorded only where it was entered, and the longer it delayed,
 * the longer before that may be: half of the latency, within these bounds. */
#define LEAD_NS      40000
#define MOST_LEAD_NS 500000
/* If it had interrupts off: where they went off. */
#define OFF_NS 1000000

static struct {
	unsigned int limit, count;
	uint64_t room;
	struct path path[OPTIONS_WORST]; /* worst first */
} worst;

void worst_init(unsigned int limit, uint64_t room)
{
	worst.limit = limit;
	worst.room = room;
}

static uint64_t lead_ns(uint64_t latency_ns)
{
	uint64_t half_ns = latency_ns / 2;

	if (half_ns < LEAD_NS)
		return LEAD_NS;
	return half_ns < MOST_LEAD_NS ? half_ns : MOST_LEAD_NS;
}

/* False: no memory; the wake-up is not kept. */
static bool copy_path(const struct mark *mark, struct path *path)
{
	uint64_t back_ns = mark->latency_ns + lead_ns(mark->latency_ns);
	struct section section = {
		.kind = SECTION_WORST,
		.cpu = mark->cpu,
		.latency_ns = mark->latency_ns,
		.sequence = mark->sequence,
		.first = mark->at_ns > back_ns ? mark->at_ns - back_ns : 0,
		.last = mark->at_ns,
	};

	section.first = paths_since_off(section.first, OFF_NS);
	return paths_copy(section, path);
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
