/* SPDX-License-Identifier: MIT */
/*
 * tracer - records what the kernel did around the worst wake-ups, while others measure.
 *
 * A thread of its own, on a CPU that is not measured where there is one, takes the raw
 * pages out of the kernel's ring and the candidates out of the samplers' rings, and
 * keeps the pages around the worst (see tracewindow). The measurement does not wait for
 * it: what comes too fast is overwritten by the kernel, which counts it.
 */
#ifndef TRACER_H
#define TRACER_H

#include <stdbool.h>

#include "journal/journal.h"
#include "machine/cpulist.h"
#include "machine/tracefs.h"
#include "thread/rounds.h"
#include "trace/candidates.h"
#include "trace/traceevents.h"
#include "trace/tracewindow.h"

struct options;
struct tracer {
	bool opened;
	struct tracefs_refusal refusal; /* no cause: it records */
	char tracefs[TRACEFS_PATH];
	char instance[TRACEFS_PATH];
	enum trace_use use;
	struct trace_enabled events;
	struct tracewindow window;
	struct candidates *candidates; /* one for each sampler; of the caller */
	unsigned int samplers;
	int64_t before_ns, after_ns; /* kept before the expiry and after the wake-up */
	unsigned int cpus;
	int cpu[CPULIST_MAX_CPUS];
	int raw_fd[CPULIST_MAX_CPUS];
	/* counted by the kernel over the run; -1: it does not tell */
	int64_t overrun[CPULIST_MAX_CPUS], dropped[CPULIST_MAX_CPUS];
	int kallsyms_fd;
	unsigned int buffer_kb; /* of each CPU */

	struct rounds rounds;
	bool recording;
	/* sees each page as it is read, before the window takes it; may be NULL */
	void (*page_read)(void *context, unsigned int cpu, const unsigned char *page);
	void *page_context;
	/* as it was when the rings got their form: the machine's may change */
	char header_page[1024];
};

/* Makes the instance and all memory; needs the rights that measuring later gives up.
 * What refuses is in t->refusal: a run without a trace is a run. */
void tracer_open(struct tracer *t, struct journal *journal,
		 struct candidates *candidates, unsigned int samplers,
		 const struct options *options);

/* Whether it was opened and nothing refused. */
static inline bool tracer_works(const struct tracer *t)
{
	return t->opened && !t->refusal.cause;
}

/* Begins to record, when the samplers' threads are there and not yet let go: tid of
 * each. */
void tracer_start(struct tracer *t, const int *tid);

/* The same for threads of another process; the caller calls tracer_round() itself, at
 * least every 50 ms. What refuses is in t->refusal. */
void tracer_record(struct tracer *t, const int *tid, unsigned int tids);

/* Reads what the kernel has written since the last time. */
void tracer_round(struct tracer *t);

/* Takes what is left, when the samplers have ended, and closes what would keep the
 * instance from being removed, also if it was never started. The pages stay. */
void tracer_stop(struct tracer *t);

void tracer_free(struct tracer *t);

#endif
