/* SPDX-License-Identifier: MIT */
/*
 * candidates - wake-ups that a sampler takes for its worst so far, for who keeps traces.
 *
 * A ring with one writer, the sampler, and one reader, the tracing thread: no lock, no
 * system call, bounded time. A full ring counts what it lost.
 */
#ifndef CANDIDATES_H
#define CANDIDATES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/worst.h"

/* The first K of a run and a few in a million later; they are taken every 50 ms. */
#define CANDIDATES_SLOTS 256

struct candidates {
	_Alignas(64) _Atomic uint32_t head; /* written by the sampler */
	_Atomic uint32_t lost;
	_Alignas(64) _Atomic uint32_t tail; /* written by the reader */
	int cpu;                            /* of the sampler; -1: it may use several */
	struct wakeup slot[CANDIDATES_SLOTS];
};

/* The sampler's side. */
static inline void candidates_push(struct candidates *c, struct wakeup wakeup)
{
	uint32_t head = atomic_load_explicit(&c->head, memory_order_relaxed);
	/* acquire: pairs with the reader's release; it is done with the slot */
	uint32_t tail = atomic_load_explicit(&c->tail, memory_order_acquire);

	if (head - tail == CANDIDATES_SLOTS) {
		uint32_t lost = atomic_load_explicit(&c->lost, memory_order_relaxed);

		atomic_store_explicit(&c->lost, lost + 1, memory_order_relaxed);
		return;
	}
	c->slot[head % CANDIDATES_SLOTS] = wakeup;
	/* release: pairs with the reader's acquire; the slot is filled */
	atomic_store_explicit(&c->head, head + 1, memory_order_release);
}

/* The reader's side; false if there is none. */
static inline bool candidates_pop(struct candidates *c, struct wakeup *out)
{
	uint32_t tail = atomic_load_explicit(&c->tail, memory_order_relaxed);
	/* acquire: pairs with the sampler's release */
	uint32_t head = atomic_load_explicit(&c->head, memory_order_acquire);

	if (head == tail)
		return false;
	*out = c->slot[tail % CANDIDATES_SLOTS];
	/* release: pairs with the sampler's acquire; the slot may be filled again */
	atomic_store_explicit(&c->tail, tail + 1, memory_order_release);
	return true;
}

#endif
