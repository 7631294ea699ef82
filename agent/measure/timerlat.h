/* SPDX-License-Identifier: MIT */
/*
 * timerlat - latencies of the kernel's own thread on each CPU, by its tracer timerlat.
 *
 * A thread of priority 95 sleeps for an interval again and again. The kernel reports when
 * the interrupt of its timer was handled and when the thread ran: a latency with its two
 * parts. The measuring thread only reads these lines, some times in a second.
 *
 * The tracer works in an instance of our own; its period, CPUs and thresholds are the
 * kernel's only ones, and are put back by the journal.
 */
#ifndef TIMERLAT_H
#define TIMERLAT_H

#include <stdbool.h>
#include <stdint.h>

#include "host/emit.h"
#include "measure/hist.h"
#include "measure/run.h"

struct timerlat_report {
	uint64_t number;    /* of the activation, since the tracer began */
	bool is_thread;     /* else of the interrupt */
	int64_t at_ns;      /* when it was written */
	int64_t latency_ns; /* since the timer was due */
};

/* What a sampler has read so far. */
struct timerlat {
	struct hist before, thread; /* the two parts of each latency */
	struct timerlat_report irq; /* the last one */
	int64_t base_ns;            /* half a period before the last sample was due */
	uint64_t last, periods;     /* of the last sample, from 1; of the run */
	size_t kept;                /* of text: a line whose end was not read yet */
	char text[4096];
};

/* The next report in text, which then begins behind it; false: there is none. */
bool timerlat_parse(const char **text, struct timerlat_report *out);

/* n, prefaulted. NULL: errno says why. */
struct timerlat *timerlat_alloc(unsigned int n);

/* Starts the tracer on the measured CPUs; before rights are dropped. EXIT_DONE, or
 * another after the error line of the contract. */
enum exit_status timerlat_open(struct run *run, struct emit *out);

/* The loop of a sampler. */
void timerlat_until_end(struct sampler *s);

#endif
