/* SPDX-License-Identifier: MIT */
/*
 * reports - the lines that a tracer of the kernel writes, in an instance of our own.
 *
 * What the tracer has once for the whole kernel is put back by the journal, and so is
 * the instance. Its lines have the time of CLOCK_MONOTONIC, in microseconds.
 */
#ifndef REPORTS_H
#define REPORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "host/emit.h"
#include "measure/run.h"

/* The time of a line: seconds and their six digits, which end at `end`. -1: none. */
int64_t reports_time_ns(const char *from, const char *end);

/* Sets a setting of the journal to a number, or to a word. 0 or -errno. */
int reports_set(struct run *run, const char *name, long long value, const char *word);

struct tracer_kind {
	const char *name;
	const char *beside;  /* the lines of tracers that share its settings */
	const char *file;    /* that tracefs has if the kernel has the tracer */
	const char *lacking; /* what one without that file does not do */
	const char *remedy;
	int (*set_up)(struct run *run); /* 0 or -errno */
};

/* Starts a tracer on the measured CPUs; before rights are dropped. EXIT_DONE, or another
 * after the error line of the contract. */
enum exit_status reports_begin(struct run *run, struct emit *out,
			       const struct tracer_kind *kind);

/* Whether an instance below tracefs, or tracefs itself, has one of these tracers. */
bool reports_in_use(const char *tracefs, const char *tracers);

/* By the supervisor, now and then: whether somebody has changed the tracer's settings,
 * for all CPUs and instances the same. */
bool reports_changed(struct run *run);

/* Whether they were changed during the run: then the error line is written. */
bool reports_broken(struct run *run, struct emit *out);

/* Closes what would keep the instance from being removed. */
void reports_close(struct run *run);

#endif
