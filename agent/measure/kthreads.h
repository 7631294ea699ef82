/* SPDX-License-Identifier: MIT */
/*
 * kthreads - CPU time that kernel and interrupt threads used during a run.
 *
 * An interrupt thread that eats a third of a CPU does not show in a latency table; here
 * it does. Taken before and after the run, when no sampler runs.
 */
#ifndef KTHREADS_H
#define KTHREADS_H

#include "host/emit.h"

struct kthread {
	int tid;
	int cpu; /* where it ran last */
	int64_t cpu_time_ns;
	char name[64];
};

struct kthreads {
	struct kthread *thread;
	unsigned int count;
};

/* Reads all kernel threads of /proc. Returns 0 or -errno. */
int kthreads_take(struct kthreads *out);
void kthreads_free(struct kthreads *k);

/* Emits `kernel_threads` (the largest first) and how many were left out, with their sum. */
void kthreads_emit_delta(struct emit *e, const struct kthreads *before,
			 const struct kthreads *after);

#endif
