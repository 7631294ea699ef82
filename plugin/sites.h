/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sites - from where in a program a thread came by what is recorded: the stack of each
 * place is taken once, and numbered.
 *
 * A place is what is called, and the return addresses on the stack: words that are in
 * pages of code. Without tables nobody knows which of them are: older ones, left on the
 * stack, make two places of one.
 */
#ifndef SITES_H
#define SITES_H

#include <stdbool.h>
#include <stdint.h>

struct site {
	uint64_t key;
	uint32_t number; /* of its stack, from 1 on; 0: a free slot */
};

/* Those of a thread. */
struct sites {
	struct site *slot; /* open addressing; NULL: none yet */
	unsigned int used;
};

/* A page that has an address has code. */
void sites_note_code(uint64_t address);

/* What a place is told by: `what`, and words of a stack. */
uint64_t sites_key(uint64_t what, const uint64_t *word, unsigned int words);

/* The number of its stack; 0: there is none yet. */
uint32_t sites_find(const struct sites *sites, uint64_t key);

/* A number for a stack that is about to be taken; 0: there are `most`. */
uint32_t sites_add(struct sites *sites, uint64_t key, uint64_t most);

void sites_forget(struct sites *sites);

#endif
