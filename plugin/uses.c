/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "uses.h"

#include "registers.h"

/* FNV-1a of 64-bit words, as boards/recording/programuses.py makes it of a file. */
#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static bool sum_of(uint64_t page, uint64_t *sum)
{
	static uint64_t word[USES_PAGE / 8];

	if (!registers_copy_memory(page, sizeof(word), word))
		return false;
	*sum = FNV_BASIS;
	for (unsigned int i = 0; i < USES_PAGE / 8; i++)
		*sum = (*sum ^ word[i]) * FNV_PRIME;
	return true;
}

unsigned int uses_at(const struct options *options, uint64_t address)
{
	uint64_t offset = address % USES_PAGE, sum = 0;
	bool is_known = false;

	for (unsigned int i = 0; i < options->uses; i++) {
		if (options->use[i].offset != offset)
			continue;
		if (!is_known && !sum_of(address - offset, &sum))
			return 0;
		is_known = true;
		if (options->use[i].sum == sum)
			return 1 + i;
	}
	return 0;
}
