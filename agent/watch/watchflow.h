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

#include <stdbool.h>
#include <stdint.h>

#include "watch/watchstate.h"

/* Reads the forms. While the rights to look into tracefs are there. */
void watchflow_make(struct watch *w, const char *tracefs, int err);

/* Begins with the wake-ups of all CPUs; then each thread. */
void watchflow_begin(struct watch *w);
void watchflow_attach(struct watch *w, struct watched *t);

/* A sample of a fault, which comes when it is over. */
void watchflow_fault(struct watch *w, int tid, int64_t t_ns, bool major);

/* A call of a function whose callers wait for a lock. */
void watchflow_mark(struct watch *w, int tid, int64_t t_ns);

/* What the arguments of a system call say of it, as watchcalls_read(). */
bool watchflow_call(struct watchflow *f, const struct watchform_record *r,
		    struct timeline_record *out);

/* The same of a sample, which has a copy of the stack as the call was made. */
bool watchflow_sampled_call(struct watchflow *f, const struct perfsample *sample,
			    struct timeline_record *out);

/* Takes what there is; what is not before `until_ns` waits for the next time. */
void watchflow_take(struct watch *w, int64_t until_ns);

void watchflow_detach(const struct watch *w, struct watched *t);
void watchflow_end(struct watch *w);

#endif
