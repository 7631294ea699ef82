/* SPDX-License-Identifier: MIT */
/*
 * around - the machine's counters shortly before and after the worst wake-ups: what can
 * be known where the kernel's events cannot be recorded.
 *
 * A thread of its own looks at /proc ten times a second. Of each of the worst wake-ups
 * the look before its expiry and the one after its wake-up are kept: weaker evidence than
 * a trace, since a tenth of a second holds many other things.
 */
#ifndef AROUND_H
#define AROUND_H

#include "candidates.h"
#include "counters.h"
#include "rounds.h"
#include "worst.h"

struct sampler;

#define AROUND_LOOKS 16 /* 1.6 s: a wake-up that is later than that is told to be cut */

struct around_look {
	int64_t begin_ns, end_ns; /* it takes its time */
	unsigned int refs;
	struct snapshot interrupts, softirqs, stat, schedstat;
};

struct around_kept {
	struct wakeup wakeup;
	int cpu;
	bool cut; /* the look before came after its expiry */
	struct around_look *from, *to;
};

struct around {
	struct candidates *candidates; /* one for each sampler; of the caller */
	const struct sampler *sampler;
	unsigned int samplers;
	unsigned int limit, count;
	struct around_kept kept[WORST_MAX];     /* worst first */
	struct around_look *look[AROUND_LOOKS]; /* the newest last */
	unsigned int looks;
	struct rounds rounds;
};

/* Begins to look. Returns 0 or -errno. */
int around_start(struct around *a, struct candidates *candidates,
		 const struct sampler *sampler, unsigned int samplers,
		 unsigned int worst);
void around_stop(struct around *a);

/* One look; what the thread does. */
void around_round(void *around);

/* Emits `around` of the result. */
void around_emit(const struct around *a, struct emit *e);

void around_free(struct around *a);

#endif
