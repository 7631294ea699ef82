/* SPDX-License-Identifier: MIT */
/* wide - 128 bits as two words: 32-bit ARM has no __int128. */
#ifndef WIDE_H
#define WIDE_H

#include <stdint.h>

struct wide {
	uint64_t low;
	uint64_t high;
};

static inline void wide_add(struct wide *w, uint64_t low, uint64_t high)
{
	w->low += low;
	w->high += high + (w->low < low);
}

/* ns * ns without __int128. */
void wide_add_square(struct wide *w, uint64_t ns);

#endif
