/* SPDX-License-Identifier: MIT */
/*
 * hwlat - holes with interrupts off, as the kernel's tracer hwlat finds them.
 *
 * A thread of the kernel for each CPU reads a clock in a loop with interrupts off, for
 * `width` of each window; what takes time then is firmware, hardware or a host. It
 * reports the longest gap of a window if it is above a threshold, else nothing. A window
 * is an interval of the run: the measuring thread only reads the reports.
 *
 * The tracer works in an instance of our own; its width, window, mode and threshold are
 * the kernel's only ones, and are put back by the journal.
 */
#ifndef HWLAT_H
#define HWLAT_H

#include "host/emit.h"
#include "measure/run.h"

struct hwlat_report {
	int64_t at_ns;  /* when its window ended */
	int64_t gap_ns; /* the longer of those within and between two loops */
};

/* The next report in text, which then begins behind it; false: there is none. */
bool hwlat_parse(const char **text, struct hwlat_report *out);

/* Starts the tracer on the measured CPUs; before rights are dropped. EXIT_DONE, or
 * another after the error line of the contract. */
enum exit_status hwlat_open(struct run *run, struct emit *out);

/* The loop of a sampler. */
void hwlat_until_end(struct sampler *s);

#endif
