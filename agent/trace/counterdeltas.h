/* SPDX-License-Identifier: MIT */
/*
 * counterdeltas - the machine's counters shortly before and after the worst wake-ups: what can
 * be known where the kernel's events cannot be recorded.
 *
 * A thread of its own looks at /proc ten times a second. Of each of the worst wake-ups
 * the look before its expiry and the one after its wake-up are kept: weaker evidence than
 * a trace, since a tenth of a second holds many other things.
 */
#ifndef COUNTERDELTAS_H
#define COUNTERDELTAS_H

#include "machine/counters.h"
#include "thread/rounds.h"
#include "trace/candidates.h"
#include "trace/worst.h"

#define COUNTERDELTAS_LOOKS                                                            \
	16 /* 1.6 s: a wake-up that is later than that is told to be cut */

struct counter_look {
	int64_t begin_ns, end_ns; /* it takes its time */
	unsigned int refs;
	struct snapshot interrupts, softirqs, stat, schedstat;
};

struct kept_deltas {
	struct wakeup wakeup;
	int cpu;
	bool truncated; /* the look before came after its expiry */
	struct counter_look *from, *to;
};

struct counterdeltas {
	struct candidates *candidates; /* one for each sampler; of the caller */
	unsigned int samplers;
	unsigned int limit, count;
	struct kept_deltas kept[WORST_MAX];             /* worst first */
	struct counter_look *look[COUNTERDELTAS_LOOKS]; /* the newest last */
	unsigned int looks;
	struct rounds rounds;
};

/* Begins to look. Returns 0 or -errno. */
int counterdeltas_start(struct counterdeltas *a, struct candidates *candidates,
			unsigned int samplers, unsigned int worst);
void counterdeltas_stop(struct counterdeltas *a);

/* One look; what the thread does. */
void counterdeltas_round(void *deltas);

/* Emits `around` of the result. */
void counterdeltas_emit(const struct counterdeltas *a, struct emit *e);

void counterdeltas_free(struct counterdeltas *a);

#endif
