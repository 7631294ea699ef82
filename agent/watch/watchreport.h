/* SPDX-License-Identifier: MIT */
/*
 * watchreport - the lines of `watch`: what could be seen, each stack, each thread.
 */
#ifndef WATCHREPORT_H
#define WATCHREPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "host/emit.h"
#include "watch/perfevent.h"
#include "watch/timeline.h"
#include "watch/watchflow.h"
#include "watch/watchplaces.h"

#define WATCH_MAX_THREADS 128
#define WATCH_FILTER      1024

struct watched {
	int tid;
	bool alive;
	bool on_cpus; /* its tracepoints are: see watchplaces.h */
	char name[32];
	int64_t from_ns;
	struct perfring ring;   /* of software events */
	struct perfring probes; /* and tracepoints: their storms must not fill it */
	struct perfevent event[PERFEVENT_MAX_KINDS]; /* as in watch.kind; its own */
	struct perfevent *of_cpu; /* by kind and CPU, where they are not its own */
	uint64_t sampled[PERFEVENT_MAX_KINDS];
	struct watchflow_thread flow;
	struct timeline line;
};

/* Of one event in the watched thread: not watched, counted, its stack copied, too. */
struct watch_cost {
	const char *name;
	int64_t plain_ns, counted_ns, copied_ns; /* 0: unknown */
};

struct watch {
	struct emit *out;
	int pid;
	unsigned char *buffer; /* for one record of a ring */
	struct perfevent_kind kind[PERFEVENT_MAX_KINDS];
	int refused[PERFEVENT_MAX_KINDS]; /* -errno; 0: it can be seen */
	char memory_filter[WATCH_FILTER], blocking_filter[WATCH_FILTER];
	unsigned int kinds, samplers; /* samplers of software events */
	size_t ring_bytes;
	struct watched *thread[WATCH_MAX_THREADS];
	unsigned int threads;
	uint64_t stacks_each; /* of each kind and thread */
	uint64_t stacks;      /* of all so far */
	int64_t from_ns, to_ns;
	int64_t seen, vanished, not_watched, samples_lost;
	struct watch_cost cost[3];
	struct watchflow flow;
	struct watchplaces places;
	bool gone; /* the process ended before the time was over */
};

/* The events of one kind: the thread's own, or as many as there are CPUs. */
struct perfevent *watched_events(const struct watch *w, struct watched *t,
				 unsigned int kind, unsigned int *count);

void watchreport_begin(struct watch *w);
void watchreport_sample(struct watch *w, const struct watched *t, unsigned int kind,
			const struct perfsample *sample);
void watchreport_thread(struct watch *w, struct watched *t);
int watchreport_end(struct watch *w, const char *stopped);

#endif
