/* SPDX-License-Identifier: MIT */
/*
 * flowevents - opens and closes the events of which watchflow reads the records.
 *
 * Of a thread that has its place on the CPUs, faults alone are its own, and these only if
 * the kernel has no tracepoints of them: no other filter can tell whose they are.
 */
#ifndef FLOWEVENTS_H
#define FLOWEVENTS_H

#include <stdbool.h>

#include "watch/watchstate.h"

/* FLOW_FAULT is any of a thread's own, on a CPU those in user space. */
enum { FLOW_SWITCH, FLOW_ENTER, FLOW_LEAVE, FLOW_FAULT, FLOW_KERNEL_FAULT };

#define FLOW_OWN FLOW_KERNEL_FAULT /* so many can be a thread's own, all be of a CPU */

/* In the filter of wake-ups. An interrupt is no thread that is less urgent, and to write
 * down what a timer does each cycle would delay the wake-up. */
#define FLOW_NOT_IN_INTERRUPT " && !(common_flags & 8)"

/* Opens the event of wake-ups of one CPU, again if it is open. Returns 0 or -errno. */
int flowevents_open_waking(struct watchflow *f, unsigned int cpu);

bool flowevents_is_real_time(int tid);

/* Looks at the wake-ups of those threads that are real-time now. */
void flowevents_look_at_policies(struct watch *w);

/* Whether the begin of a fault can be an event of a CPU. */
bool flowevents_have_faults_on_cpus(const struct watchflow *f);

void flowevents_init(struct watchflow_thread *t);

/* On the CPUs if the thread has its place there and the kernel permits it, else its own.
 * Returns 0 or -errno; what was opened is to be closed also then. */
int flowevents_open(struct watch *w, struct watched *t);
void flowevents_close(struct watchflow_thread *t, unsigned int cpus);

#endif
