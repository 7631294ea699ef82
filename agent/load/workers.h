/* SPDX-License-Identifier: MIT */
/*
 * workers - what each process of a load did in windows of time: proof that it ran.
 *
 * The caller shows every process below it at each look, by ascending pid; then the
 * growth since the look before is written. Memory is bounded: what does not fit is
 * counted.
 */
#ifndef WORKERS_H
#define WORKERS_H

#include <stdint.h>

#include "host/emit.h"
#include "machine/procstat.h"

#define WORKERS_MAX       512
#define WORKERS_NAME_SIZE 16 /* TASK_COMM_LEN */

/* Counts are since the process began; -1: not readable. */
struct worker {
	int pid, parent;
	char state; /* as in /proc/PID/stat */
	int64_t started_ticks;
	int64_t cpu_ticks, voluntary_switches, involuntary_switches;
	char name[WORKERS_NAME_SIZE];
};

/* Zero, but for from_ns: when the first window begins. */
struct workers {
	int64_t from_ns;
	/* by pid: as of the window before, and as seen now */
	struct worker table[2][WORKERS_MAX];
	unsigned int count[2];
	unsigned int now; /* which of the two tables is filled */
	unsigned int fresh;
	unsigned int not_watched;
};

/* A proctree_visitor; context is a struct workers. */
void workers_see(void *context, const struct procstat *process);

/* Writes the line of a window that ends now, and begins the next one. */
void workers_emit(struct workers *w, int64_t now_ns, struct emit *out);

/* A count in the text of /proc/PID/status, by its name there; -1 without one. */
int64_t workers_status_count(const char *text, const char *name);

#endif
