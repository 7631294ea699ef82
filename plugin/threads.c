/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_PLACES 1024

static struct {
	struct thread *place; /* open addressing; a power of two of them */
	size_t places, used;
} table;

static struct thread *find(uint64_t task)
{
	/* Knuth's multiplicative hash: the upper bits depend on all of the address */
	uint64_t hash = task * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(hash >> 32) & (table.places - 1);

	while (table.place[i].task && table.place[i].task != task)
		i = (i + 1) & (table.places - 1);
	return &table.place[i];
}

static void grow(void)
{
	struct thread *old = table.place;
	size_t places = table.places;

	table.places = places ? 2 * places : FIRST_PLACES;
	table.place = calloc(table.places, sizeof(struct thread));
	if (!table.place) {
		fprintf(stderr, "rtscope-plugin: out of memory\n");
		exit(1);
	}
	for (size_t i = 0; i < places; i++)
		if (old[i].task)
			*find(old[i].task) = old[i];
	free(old);
}

struct thread *thread_known(uint64_t task)
{
	struct thread *found = table.places ? find(task) : NULL;

	return found && found->task ? found : NULL;
}

struct thread *thread_at(uint64_t task)
{
	struct thread *found;

	if (2 * table.used >= table.places)
		grow();
	found = find(task);
	if (!found->task) {
		found->task = task;
		table.used++;
	}
	return found;
}

struct thread *thread_renew(uint64_t task)
{
	struct thread *found = thread_at(task);

	sites_forget(&found->sites);
	*found = (struct thread){ .task = task };
	return found;
}
