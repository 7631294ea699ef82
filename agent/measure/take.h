/* SPDX-License-Identifier: MIT */
/* take - one sample of a measuring thread into its figures, whatever has woken it. */
#ifndef TAKE_H
#define TAKE_H

#include "measure/sampler.h"

#define relaxed(object) atomic_load_explicit(&(object), memory_order_relaxed)
#define relax(object, desired)                                                         \
	atomic_store_explicit(&(object), desired, memory_order_relaxed)

/* The slow part of a sample: reached by a handful of wake-ups in a million. */
void take_bad(struct sampler *s, const struct wakeup *w, bool new_maximum);

/* The rest of it, after that part. */
static inline void take(struct sampler *s, int64_t latency_ns)
{
	hist_add(&s->hist, latency_ns);

	/* Load and store, no exchange: the supervisor takes the maximum with an
	 * exchange, and a maximum that crosses it lands in the next second. */
	if (latency_ns > relaxed(s->progress.window_max_ns))
		relax(s->progress.window_max_ns, latency_ns);
	relax(s->progress.samples, relaxed(s->progress.samples) + 1);
}

/* Moves along by comparison, without a division. 64 bits: where long has 32, tv_nsec
 * cannot hold the sum with an interval of more than a second. */
static inline void take_advance(struct timespec *t, int64_t by_ns)
{
	int64_t nsec = t->tv_nsec + by_ns;

	while (nsec >= NS_PER_S) {
		nsec -= NS_PER_S;
		t->tv_sec++;
	}
	t->tv_nsec = (long)nsec;
}

#endif
