/* SPDX-License-Identifier: MIT */
/*
 * pickqueue - puts the events of all CPUs in order of time. Pure.
 *
 * For more than there is room for, it has one PICK_LOST from the first to the last of
 * them, and counts it: what is left out is told, and is no time without events.
 */
#ifndef PICKQUEUE_H
#define PICKQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cycles/cyclepick.h"

struct pickqueue {
	struct pick *pick; /* room for `most` */
	size_t count, most;
	struct pick lost;
	bool has_lost;
	uint64_t losses;
};

void pickqueue_add(struct pickqueue *q, const struct pick *pick);

/* Gives those before a time, and the loss. Others stay. */
void pickqueue_give(struct pickqueue *q, int64_t until_ns, cyclepick_take *take,
		    void *context);

#endif
