/* SPDX-License-Identifier: MIT */
/*
 * watchreport - the lines of `watch`: what could be seen, each stack, each thread.
 */
#ifndef WATCHREPORT_H
#define WATCHREPORT_H

#include "watch/watchstate.h"

/* The events of one kind: the thread's own, or as many as there are CPUs. */
struct perfevent *watched_events(const struct watch *w, struct watched *t,
				 unsigned int kind, unsigned int *count);

void watchreport_begin(struct watch *w);
void watchreport_sample(struct watch *w, const struct watched *t, unsigned int kind,
			const struct perfsample *sample,
			const struct timeline_record *call);
void watchreport_executed(struct watch *w, struct watched *t,
			  const struct perfsample *sample);
void watchreport_thread(struct watch *w, struct watched *t);
int watchreport_end(struct watch *w, const char *stopped);

#endif
