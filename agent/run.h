/* SPDX-License-Identifier: MIT */
/* run - everything that belongs to one measurement; filled by measure.c and crew.c. */
#ifndef RUN_H
#define RUN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "around.h"
#include "counters.h"
#include "journal.h"
#include "klog.h"
#include "kthreads.h"
#include "options.h"
#include "sampler.h"
#include "sensors.h"
#include "tracer.h"

#define RUN_MAX_RESTORED 32 /* more than there are knobs */

struct run {
	struct options *options;
	struct journal journal;
	char restored[RUN_MAX_RESTORED][KNOB_NAME_MAX]; /* left by a killed run */
	unsigned int restored_count;

	struct cpulist housekeeping; /* usable and not measured */
	unsigned int count;          /* of samplers */
	unsigned int started;        /* of them, how many threads are to be joined */
	struct sampler *sampler;
	uint32_t record_version[CPULIST_MAX_CPUS];
	_Atomic bool stop; /* one writer, the supervisor; a flag, it orders nothing */

	int dma_latency_fd; /* open only while it is held */
	int32_t dma_latency_us;
	bool dma_latency_held;

	int64_t start_ns, end_ns;
	enum tether_end ended_by;
	bool starved; /* a thread did not end: it cannot be joined */
	int64_t locked_kb;
	int64_t ticks_lost;

	/* of --trace: the tracer, or if something refuses it, counters around */
	struct candidates *candidates; /* one for each sampler */
	struct tracer tracer;
	struct around around;
	struct klog klog;
	struct sensors sensors;
	struct clock_watch clocks;
	struct kthreads kthreads_before, kthreads_after;
	struct snapshot interrupts_before, interrupts_after;
	struct snapshot softirqs_before, softirqs_after;
	struct snapshot stat_before, stat_after;

	char text[512]; /* for messages */
};

#endif
