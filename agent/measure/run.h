/* SPDX-License-Identifier: MIT */
/* run - everything that belongs to one measurement; filled by measure.c and samplers.c. */
#ifndef RUN_H
#define RUN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "journal/journal.h"
#include "machine/counters.h"
#include "measure/eventway.h"
#include "measure/growth.h"
#include "measure/klog.h"
#include "measure/kthreads.h"
#include "measure/meters.h"
#include "measure/sampler.h"
#include "measure/samples.h"
#include "measure/sensors.h"
#include "options.h"
#include "trace/counterdeltas.h"
#include "trace/tracer.h"

#define RUN_MAX_RESTORED 32 /* more than there are knobs */
#define RUN_MAX_SETTINGS 4  /* of a tracer */

/* The machine's own counters, at the start or at the end of a run. */
struct machine_counters {
	struct kthreads kthreads;
	struct snapshot interrupts, softirqs, stat;
};

/* /dev/cpu_dma_latency: the wake-up time that programs ask of the idle states. */
struct dma_latency {
	int fd;     /* open only while it is held */
	int32_t us; /* as found; -1: not readable */
	bool held;
};

/* What a tracer of the kernel was set to. */
struct tracer_setting {
	const char *knob;
	char value[KNOB_VALUE_MAX];
};

struct run {
	struct options *options;
	struct journal journal;
	char restored[RUN_MAX_RESTORED][KNOB_NAME_MAX]; /* left by a killed run */
	unsigned int restored_count;

	struct cpulist housekeeping; /* usable and not measured */
	struct cpulist usable;       /* by stimuli, where no CPU was named */
	unsigned int count;          /* of samplers that measure: the first ones */
	unsigned int threads;        /* of samplers, with those that are stimuli */
	unsigned int started;        /* of them, how many threads are to be joined */
	struct sampler *sampler;
	struct eventway *way; /* of each that measures; NULL: by its timer */
	int reports_fd
		[CPULIST_MAX_CPUS]; /* of each that measures, by a tracer; 0: none */
	struct tracer_setting setting[RUN_MAX_SETTINGS];
	unsigned int settings;
	const struct tracer_setting *changed; /* by somebody else, during the run */
	struct timerlat *timerlat; /* of each that measures; NULL: not by it */
	uint32_t record_version[CPULIST_MAX_CPUS];
	int64_t tick_max_ns
		[CPULIST_MAX_CPUS]; /* of each sampler, since the last tick */
	_Atomic bool stop; /* one writer, the supervisor; a flag, it orders nothing */

	struct dma_latency dma_latency;

	int64_t start_ns, end_ns;
	enum hostlink_end ended_by;
	bool starved; /* a thread did not end: it cannot be joined */
	int64_t locked_kb;
	int64_t ticks_lost;
	struct samples
		*samples;      /* of --keep-samples: one for each sampler; else NULL */
	struct growth *growth; /* of --growth: one for each sampler; else NULL */

	/* of --trace: the tracer, or if something refuses it, counters instead */
	struct candidates *candidates; /* one for each sampler */
	struct tracer tracer;
	struct counterdeltas counterdeltas;
	struct klog klog;
	struct sensors sensors;
	struct meters meters; /* of machines, with --growth */
	struct clock_watch clocks;
	struct machine_counters before, after;

	char text[512]; /* for messages */
};

#endif
