/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sites.h"

#include <stdlib.h>

#include "fnv.h"
#include "options.h"

#define PAGE_SHIFT 12
#define CODE_BITS  22 /* a page has one of so many bits; two may share one */
#define SLOT_BITS  11 /* of a thread: twice the places that it may have */
#define MAX_NUMBER 0xffff
/* Knuth's multiplicative hash: the upper bits depend on all of a word */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

_Static_assert(1u << SLOT_BITS >= 2 * OPTIONS_STACKS, "places do not fit");

static struct {
	uint64_t code[(1u << CODE_BITS) / 64];
	uint32_t numbers;
} all;

static uint64_t bit_of(uint64_t address)
{
	return (address >> PAGE_SHIFT) * SPREAD >> (64 - CODE_BITS);
}

void sites_note_code(uint64_t address)
{
	uint64_t bit = bit_of(address);

	all.code[bit / 64] |= UINT64_C(1) << bit % 64;
}

static bool is_code(uint64_t address)
{
	uint64_t bit = bit_of(address);

	return address >> PAGE_SHIFT && !(address >> 63) &&
	       all.code[bit / 64] >> bit % 64 & 1;
}

uint64_t sites_key(uint64_t what, const uint64_t *word, unsigned int words)
{
	uint64_t key = fnv_add(FNV_BASIS, what);

	for (unsigned int i = 0; i < words; i++)
		if (is_code(word[i]))
			key = fnv_add(key, word[i]);
	return key;
}

static struct site *slot_of(const struct sites *sites, uint64_t key)
{
	unsigned int i = (unsigned int)(key * SPREAD >> (64 - SLOT_BITS));

	while (sites->slot[i].number && sites->slot[i].key != key)
		i = (i + 1) & ((1u << SLOT_BITS) - 1);
	return &sites->slot[i];
}

uint32_t sites_find(const struct sites *sites, uint64_t key)
{
	return sites->slot ? slot_of(sites, key)->number : 0;
}

uint32_t sites_add(struct sites *sites, uint64_t key, uint64_t most)
{
	struct site *slot;

	if (sites->used >= most || all.numbers == MAX_NUMBER)
		return 0;
	if (!sites->slot)
		sites->slot = calloc(1u << SLOT_BITS, sizeof(*sites->slot));
	if (!sites->slot)
		return 0;
	sites->used++;
	slot = slot_of(sites, key);
	*slot = (struct site){ key, ++all.numbers };
	return slot->number;
}

void sites_forget(struct sites *sites)
{
	free(sites->slot);
	*sites = (struct sites){ 0 };
}
