/* SPDX-License-Identifier: MIT */
/*
 * rounds - a thread that does the same thing again and again beside a measurement.
 *
 * It runs where the supervisor may: on no measured CPU, if one is left over.
 */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct rounds {
	pthread_t thread;
	bool running;
	_Atomic bool stop; /* one writer, the supervisor; a flag, it orders nothing */
	const char *name;
	int64_t period_ns;
	void (*round)(void *context);
	void *context;
	/* by the thread; read after rounds_stop() */
	uint64_t count;
	int64_t last_ns, longest_gap_ns;
};

/* name, period_ns, round and context are set. Returns 0 or -errno. */
int rounds_start(struct rounds *r);

/* Lets the thread end its round, and does a last one; nothing if it does not run. */
void rounds_stop(struct rounds *r);

#endif
