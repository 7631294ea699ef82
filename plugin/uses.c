/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "uses.h"

#include "fnv.h"
#include "registers.h"

/* As boards/recording/programuses.py makes it of a file. */
static bool sum_of(uint64_t page, uint64_t *sum)
{
	static uint64_t word[USES_PAGE / 8];

	if (!registers_copy_memory(page, sizeof(word), word))
		return false;
	*sum = FNV_BASIS;
	for (unsigned int i = 0; i < USES_PAGE / 8; i++)
		*sum = fnv_add(*sum, word[i]);
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
