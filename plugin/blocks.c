/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "blocks.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_PLACES 65536

static struct {
	struct block **place; /* open addressing; a power of two of them */
	size_t places, used;
} table;

static void *allocate(size_t n, size_t size)
{
	void *memory = calloc(n, size);

	if (!memory) {
		fprintf(stderr, "rtscope-plugin: out of memory\n");
		exit(1);
	}
	return memory;
}

static bool same(const struct block *a, const struct block *b)
{
	return a->address == b->address && a->instructions == b->instructions &&
	       a->look_at_begin == b->look_at_begin && a->look_after == b->look_after &&
	       a->may_count == b->may_count && a->waits == b->waits &&
	       a->after_switch == b->after_switch && a->wakes == b->wakes;
}

static struct block **find(const struct block *block)
{
	/* Knuth's multiplicative hash: the upper bits depend on all of the address */
	uint64_t hash = (block->address ^ (uint64_t)block->instructions << 56) *
			UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(hash >> 32) & (table.places - 1);

	while (table.place[i] && !same(table.place[i], block))
		i = (i + 1) & (table.places - 1);
	return &table.place[i];
}

static void grow(void)
{
	struct block **old = table.place;
	size_t places = table.places;

	table.places = places ? 2 * places : FIRST_PLACES;
	table.place = allocate(table.places, sizeof(struct block *));
	for (size_t i = 0; i < places; i++)
		if (old[i])
			*find(old[i]) = old[i];
	free(old);
}

struct block blocks_at(uint64_t address, unsigned int instructions,
		       const struct options *options)
{
	return (struct block){
		.address = address,
		.instructions = instructions,
		/* Kernels live in the upper half of the addresses. */
		.in_program = address >> 63 ? 0 : instructions,
		.schedules = address == options->schedule,
		.idles = address == options->idle,
		.sleeps = address == options->sleep,
		.exits = address == options->exit,
		.after_switch = address == options->switched,
		.wakes = address == options->wake,
		.renames = address == options->rename,
	};
}

const struct block *blocks_intern(struct block block)
{
	struct block **place;

	if (2 * table.used >= table.places)
		grow();
	place = find(&block);
	if (!*place) {
		*place = allocate(1, sizeof(struct block));
		**place = block;
		(*place)->number = (uint32_t)table.used++;
	}
	return *place;
}
