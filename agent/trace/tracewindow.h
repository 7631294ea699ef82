/* SPDX-License-Identifier: MIT */
/*
 * tracewindow - raw trace pages in memory: the last ones of each CPU, and those around
 * the worst wake-ups of the run, which need no threshold set beforehand.
 *
 * Used by the tracing thread alone. All memory is allocated before the run. A page is
 * in the window of its CPU, which holds the last ones, and may be held by kept wake-ups
 * too. What had to go although a kept wake-up wanted it is told with the wake-up.
 */
#ifndef TRACEWINDOW_H
#define TRACEWINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/tracepage.h"
#include "trace/worst.h"

#define TRACEWINDOW_NONE UINT32_MAX

struct trace_page {
	uint64_t seq;     /* of its CPU, from 0: a step of more than one is a gap */
	unsigned int cpu; /* the index of the window, not the CPU's number */
	unsigned int refs;
	struct tracepage_span span;
	int64_t before_ns; /* the end of its CPU's page before: gaps begin there */
};

/* A wake-up whose trace is kept. */
struct trace_kept {
	struct wakeup wakeup;
	int cpu;                /* where the thread was pinned; -1: nowhere */
	unsigned int own;       /* the index of its window; TRACEWINDOW_NONE: nowhere */
	int64_t from_ns, to_ns; /* wanted */
	bool truncated;   /* not all that was wanted was still there, or had room */
	bool overwritten; /* events within it were overwritten, or damaged */
	bool given_up;    /* its pages went to a worse one: memory was short */
	unsigned int pages;
	uint32_t *page; /* up to pages_max of them */
};

/* The last pages of one CPU. */
struct trace_ring {
	uint32_t *page;
	unsigned int head, count; /* the oldest one, and how many */
	uint64_t next_seq;
	int64_t gone_ns; /* the end of the newest page that has left */
	int64_t last_ns; /* the end of the newest page that has come */
	uint64_t pages, events, missed, damaged;
	bool hole; /* before the next page: a damaged one was left out */
};

struct tracewindow {
	struct tracepage_layout layout;
	unsigned int cpus;
	unsigned int ring_pages;   /* of each CPU */
	unsigned int pages_max;    /* of a kept wake-up; of other CPUs half as many */
	unsigned int limit, count; /* of kept wake-ups */
	uint32_t free_head;
	uint32_t pool_pages;
	unsigned char *bytes;    /* pool_pages of them */
	struct trace_page *page; /* what is in them */
	uint32_t *next_free;
	struct trace_ring *ring;
	struct trace_kept kept[WORST_MAX]; /* worst first */
};

/* `pool_pages` for all; each CPU holds up to ring_pages of them. 0 or -ENOMEM. */
int tracewindow_init(struct tracewindow *w, const struct tracepage_layout *layout,
		     unsigned int cpus, unsigned int limit, uint32_t pool_pages);
void tracewindow_free(struct tracewindow *w);

/* Where the next page of the CPU is to be read to; there is always such a place. */
unsigned char *tracewindow_place(struct tracewindow *w, unsigned int cpu);

/* The page is there: takes it up, and keeps it for whom it concerns. */
void tracewindow_add(struct tracewindow *w, unsigned int cpu);

/* Keeps the trace of a wake-up, if it is among the worst so far. */
void tracewindow_want(struct tracewindow *w, const struct trace_kept *wanted);

/* The bytes of a page. */
const unsigned char *tracewindow_bytes(const struct tracewindow *w, uint32_t page);

#endif
