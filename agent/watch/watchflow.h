/* SPDX-License-Identifier: MIT */
/*
 * watchflow - puts what the kernel says of switches, wake-ups, system calls and faults of
 * the watched threads in order, and gives it to their timelines.
 *
 * All of it is of perf events, which end with this process: a thread's own are in its own
 * ring, those of CPUs in one of each CPU: wake-ups, which are somebody else's doing, and
 * of the threads that watchplaces has room for switches and calls, too.
 */
#ifndef WATCHFLOW_H
#define WATCHFLOW_H

#include <stdint.h>

#include "machine/cpulist.h"
#include "watch/perfevent.h"
#include "watch/timeline.h"
#include "watch/watchform.h"

#define WATCHFLOW_EVENTS   5
#define WATCHFLOW_PARTIES  64 /* wakers that are remembered */
#define WATCHFLOW_FRESH_NS INT64_C(1000000000)

struct watch;
struct watched;

/* An event of a thread: switches, calls, or faults. */
struct watchflow_event {
	int fd;
	uint64_t id;
};

/* Of one thread. */
struct watchflow_thread {
	struct watchflow_event own[WATCHFLOW_EVENTS];
	struct watchflow_event *on_cpu; /* of each CPU all of them; NULL: its own */
	struct perfring ring;
	bool real_time; /* its wake-ups are looked at */
};

/* Of them all. */
struct watchflow {
	int err; /* -errno: there is none */
	struct watchform form;
	uint64_t config[WATCHFLOW_EVENTS], waking; /* numbers of events; 0: none */
	char filter[4096];                         /* of system calls */
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
	struct timeline_party party[WATCHFLOW_PARTIES]; /* of other processes */
	int64_t learnt_ns;
};

/* Reads the forms. While the rights to look into tracefs are there. */
void watchflow_make(struct watch *w, const char *tracefs, int err);

/* Begins with the wake-ups of all CPUs; then each thread. */
void watchflow_begin(struct watch *w);
void watchflow_attach(struct watch *w, struct watched *t);

/* A sample of a fault, which comes when it is over. */
void watchflow_fault(struct watch *w, int tid, int64_t t_ns, bool major);

bool watchflow_is_real_time(int tid);

/* Whether the begin of a fault can be an event of a CPU. */
bool watchflow_faults_on_cpus(const struct watchflow *f);

/* Takes what there is; what is not before `until_ns` waits for the next time. */
void watchflow_take(struct watch *w, int64_t until_ns);

void watchflow_detach(const struct watch *w, struct watched *t);
void watchflow_end(struct watch *w);

#endif
