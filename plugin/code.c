/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "cpus.h"
#include "fnv.h"

#define VERSION      1
#define BEGINS       UINT64_MAX /* in the place of a time or an address */
#define FIRST_SLOTS  1024
#define FIRST_BLOCKS 4096

struct header {
	char magic[8];
	uint32_t version;
	uint32_t lost; /* pieces that were not written; known at the end */
};

/* A piece: when it ended, its thread, the number of its content from 1 on. The begin of
 * a content: BEGINS and how many blocks it has. A block: its address, how often it was
 * begun (UINT32_MAX: or more), and its instructions. */
struct unit {
	uint64_t first;
	uint32_t second, third;
};

/* What a CPU has begun since its latest piece: blocks, in the order of their first time. */
struct counts {
	bool counts;
	uint32_t *times; /* by the numbers of blocks */
	size_t room;
	const struct block **block;
	uint32_t blocks;
	size_t block_room;
};

struct content {
	uint64_t key; /* 0: a free slot */
	uint32_t number;
};

static struct {
	FILE *file;
	uint64_t most, written; /* units */
	uint32_t lost;
	struct content *slot; /* open addressing; a power of two of them */
	size_t slots;
	uint32_t contents;
	struct counts cpu[CPUS_MAX];
} code;

static void *resized(void *memory, size_t n, size_t size)
{
	memory = reallocarray(memory, n, size);
	if (!memory) {
		fprintf(stderr, "rtscope-plugin: out of memory\n");
		exit(1);
	}
	return memory;
}

int code_init(const char *path, uint64_t most)
{
	const struct header header = { .magic = "RTSCCODE", .version = VERSION };

	code.most = most;
	code.file = fopen(path, "wb");
	if (!code.file)
		return -errno;
	return fwrite(&header, sizeof(header), 1, code.file) == 1 ? 0 : -EIO;
}

/* --- counting ------------------------------------------------------------------------- */

static struct counts *counts_now(void)
{
	return &code.cpu[cpus_index(cpus.now)];
}

void code_count(bool of_program)
{
	counts_now()->counts = of_program;
}

static __attribute__((noinline)) void make_room(struct counts *counts, size_t number)
{
	size_t room = counts->room ? counts->room : FIRST_BLOCKS;

	while (room <= number)
		room *= 2;
	counts->times = resized(counts->times, room, sizeof(*counts->times));
	for (size_t i = counts->room; i < room; i++)
		counts->times[i] = 0;
	counts->room = room;
}

static __attribute__((noinline)) void add_block(struct counts *counts,
						const struct block *block)
{
	if (counts->blocks == counts->block_room) {
		counts->block_room = counts->block_room ? 2 * counts->block_room : 256;
		counts->block = resized(counts->block, counts->block_room,
					sizeof(*counts->block));
	}
	counts->block[counts->blocks++] = block;
}

void code_at_block(const struct block *block)
{
	struct counts *counts = counts_now();
	uint32_t *times;

	if (!counts->counts)
		return;
	if (__builtin_expect(block->number >= counts->room, 0))
		make_room(counts, block->number);
	times = &counts->times[block->number];
	if (!*times)
		add_block(counts, block);
	*times += *times != UINT32_MAX;
}

/* --- pieces --------------------------------------------------------------------------- */

static void put(uint64_t first, uint32_t second, uint32_t third)
{
	const struct unit unit = { first, second, third };

	fwrite(&unit, sizeof(unit), 1, code.file);
	code.written++;
}

static struct content *slot_of(uint64_t key)
{
	size_t i = (size_t)(key >> 20) & (code.slots - 1);

	while (code.slot[i].key && code.slot[i].key != key)
		i = (i + 1) & (code.slots - 1);
	return &code.slot[i];
}

static void grow(void)
{
	struct content *old = code.slot;
	size_t slots = code.slots;

	code.slots = slots ? 2 * slots : FIRST_SLOTS;
	code.slot = resized(NULL, code.slots, sizeof(*code.slot));
	for (size_t i = 0; i < code.slots; i++)
		code.slot[i] = (struct content){ 0 };
	for (size_t i = 0; i < slots; i++)
		if (old[i].key)
			*slot_of(old[i].key) = old[i];
	free(old);
}

/* Two sums of 64 bits are taken for equal contents; 0 is none. */
static uint64_t key_of(const struct counts *counts)
{
	uint64_t key = FNV_BASIS;

	for (uint32_t i = 0; i < counts->blocks; i++) {
		const struct block *block = counts->block[i];

		key = fnv_add(key, (uint64_t)block->number << 32 |
					   counts->times[block->number]);
		key ^= key >> 29;
	}
	return key ? key : 1;
}

static bool has_room(uint64_t units)
{
	return !code.lost && code.most - code.written >= units;
}

/* Returns its number; 0: there is no room. */
static uint32_t number_of(const struct counts *counts)
{
	struct content *content;
	uint64_t key = key_of(counts);

	if (2 * (size_t)code.contents >= code.slots)
		grow();
	content = slot_of(key);
	if (content->key)
		return has_room(1) ? content->number : 0;
	if (!has_room(2 + (uint64_t)counts->blocks))
		return 0;
	*content = (struct content){ key, ++code.contents };
	put(BEGINS, counts->blocks, 0);
	for (uint32_t i = 0; i < counts->blocks; i++) {
		const struct block *block = counts->block[i];

		put(block->address, counts->times[block->number], block->instructions);
	}
	return content->number;
}

void code_end_piece(uint32_t thread, unsigned int to_come)
{
	struct counts *counts = counts_now();
	uint32_t number;

	if (!counts->blocks)
		return;
	number = number_of(counts);
	if (number)
		put((uint64_t)clock_own_ns(to_come), thread, number);
	else if (code.lost < UINT32_MAX)
		code.lost++;
	for (uint32_t i = 0; i < counts->blocks; i++)
		counts->times[counts->block[i]->number] = 0;
	counts->blocks = 0;
}

bool code_end(void)
{
	struct header header = { .magic = "RTSCCODE", .version = VERSION };

	header.lost = code.lost;
	return !fseek(code.file, 0, SEEK_SET) &&
	       fwrite(&header, sizeof(header), 1, code.file) == 1 &&
	       !ferror(code.file) && !fclose(code.file);
}
