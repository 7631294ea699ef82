/* SPDX-License-Identifier: MIT */
/*
 * watchstate - all that belongs to one watching; filled by watch, watchkinds, watchflow
 * and flowevents, each of which has its part.
 */
#ifndef WATCHSTATE_H
#define WATCHSTATE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/emit.h"
#include "machine/cpulist.h"
#include "watch/descriptors.h"
#include "watch/perfevent.h"
#include "watch/timeline.h"
#include "watch/watchform.h"
#include "watch/watchplaces.h"
#include "watch/watchproc.h"

#define WATCHFLOW_EVENTS   5
#define WATCHFLOW_PARTIES  64 /* wakers that are remembered */
#define WATCHFLOW_FRESH_NS INT64_C(1000000000)

#define WATCH_MAX_THREADS 128
#define WATCH_FILTER      4000 /* a thread is added to it: PERFEVENT_FILTER */

/* Why an event is refused: the kernel tells of a call, but not of its arguments. */
#define WATCH_NARROW (-ENOEXEC)

/* An event of a thread: switches, calls, or faults. */
struct watchflow_event {
	int fd;
	uint64_t id;
};

/* The part of watchflow: of one thread. */
struct watchflow_thread {
	struct watchflow_event own[WATCHFLOW_EVENTS];
	struct watchflow_event *on_cpu; /* of each CPU all of them; NULL: its own */
	struct perfring ring;
	bool real_time; /* its wake-ups are looked at */
	struct descriptors_made made;
};

/* The part of watchflow: of all of them. */
struct watchflow {
	int err; /* -errno: there is none */
	struct watchform form;
	uint64_t config[WATCHFLOW_EVENTS], waking; /* numbers of events; 0: none */
	char filter[WATCH_FILTER];                 /* of system calls */
	struct watchproc process;
	struct descriptors descriptors;
	struct cpulist online;
	bool without_wakers; /* their events have other numbers of threads */
	int cpu_fd[CPULIST_MAX_CPUS], cpu[CPULIST_MAX_CPUS];
	bool compares; /* wake-ups with threads: a filter cannot be set again */
	struct perfring cpu_ring[CPULIST_MAX_CPUS];
	struct perfring fault_ring[CPULIST_MAX_CPUS]; /* of storms, which fill it */
	unsigned int cpus;
	struct timeline_record *pending; /* not yet in order */
	unsigned int count;
	int64_t lost;
	bool full; /* there was no place for one since the last look */
	struct timeline_party party[WATCHFLOW_PARTIES]; /* of other processes */
	int64_t learnt_ns;
	int agent_tid;
};

struct watched {
	int tid;
	bool alive;
	bool on_cpus; /* its tracepoints are: see watchplaces.h */
	bool own;     /* the agent's thread, whose wake-ups are measured */
	char name[32];
	int64_t from_ns;
	struct perfring ring;   /* of software events */
	struct perfring probes; /* and tracepoints: their storms must not fill it */
	struct perfevent event[PERFEVENT_MAX_KINDS]; /* as in watch.kind; its own */
	struct perfevent *of_cpu; /* by kind and CPU, where they are not its own */
	uint64_t sampled[PERFEVENT_MAX_KINDS]; /* and sent */
	uint64_t unsent[PERFEVENT_MAX_KINDS];  /* but copied */
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
	enum watchcalls_abi abi;          /* of the program */
	char memory_filter[WATCH_FILTER], blocking_filter[WATCH_FILTER];
	char words_filter[WATCH_FILTER];
	unsigned int kinds, samplers; /* samplers of software events */
	size_t ring_bytes;
	struct watched *thread[WATCH_MAX_THREADS];
	unsigned int threads;
	uint64_t stacks_each; /* of each kind and thread */
	uint64_t stacks;      /* of all so far */
	int64_t from_ns, to_ns;
	int64_t seen, vanished, not_watched, samples_lost;
	int64_t opening_ns; /* from a look for new threads until all have events, at most */
	struct watch_cost cost[5];
	struct watchflow flow;
	struct watchplaces places;
	bool executed; /* a program: all threads are watched anew */
	bool gone;     /* the process ended before the time was over */
};

#endif
