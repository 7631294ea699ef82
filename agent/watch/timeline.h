/* SPDX-License-Identifier: MIT */
/*
 * timeline - what happened to one thread, in order of time: how long its faults, system
 * calls and preemptions lasted, who woke it, and when a lock that it waited for was held
 * by a thread that could not run. Pure.
 *
 * Priorities are the kernel's: 0 to 98 for real-time ones, the lower the more urgent,
 * 100 and more for ordinary threads, -1 for deadline.
 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#define TIMELINE_NAME    16 /* of the kernel */
#define TIMELINE_WAKERS  8
#define TIMELINE_HISTORY 16
#define TIMELINE_LOWEST  100 /* priorities of real-time threads are below */

enum timeline_what {
	TIMELINE_OUT,    /* left the CPU; `other` got it */
	TIMELINE_IN,     /* got a CPU */
	TIMELINE_CALL,   /* entered the system call `call` */
	TIMELINE_RETURN, /* of it */
	TIMELINE_FAULT,  /* entered a page fault */
	TIMELINE_MINOR,  /* the fault was minor, and is over */
	TIMELINE_MAJOR,
	TIMELINE_WAKE, /* made runnable by `other` */
};

enum timeline_kind {
	TIMED_MINOR_FAULT,
	TIMED_MAJOR_FAULT,
	TIMED_MEMORY_CALL,
	TIMED_BLOCKING_CALL,
	TIMED_LOCK_WAIT,
	TIMED_PREEMPTED,
	TIMED_SET_ASIDE,
	TIMED_KERNEL_WAIT,
	TIMED_KINDS,
	TIMED_NOT = TIMED_KINDS,
};

enum timeline_context { IN_THREAD, IN_SOFTIRQ, IN_INTERRUPT };

struct timeline_party {
	int tid, priority;
	char name[TIMELINE_NAME];
};

struct timeline_record {
	int64_t t_ns;
	int tid; /* of the thread that it happened to */
	enum timeline_what what;
	bool runnable; /* of OUT: it could have gone on */
	bool held;     /* of OUT: it waits for the kernel, no signal ends that */
	int priority;  /* of the thread; of OUT and WAKE */
	struct timeline_party other;
	enum timeline_context context; /* of WAKE */
	enum timeline_kind kind; /* of CALL; a lock wait only if it looks like one */
	const char *call;        /* its name, which stays */
};

/* How often something was seen from begin to end, and how long it lasted. */
struct timed {
	int64_t count, total_ns, worst_ns, worst_at_ns;
	char worst_in[TIMELINE_NAME + 8]; /* the system call, or who got the CPU */
};

struct timeline_waker {
	struct timeline_party by;
	bool softirq;
	int64_t count;
};

/* A thread held a lock that this one waited for, and was kept from its CPU. */
struct timeline_inversion {
	struct timeline_party owner, by;
	struct timed waited;
};

struct timeline_interval {
	int64_t from_ns, to_ns; /* 0: still */
	struct timeline_party by;
};

struct timeline {
	int priority; /* as it was last seen */
	bool known;   /* the priority */
	bool is_out, runnable, held;
	int64_t out_ns, call_ns, fault_ns; /* 0: is in none */
	enum timeline_kind call_kind;
	const char *call;
	struct timeline_interval aside[TIMELINE_HISTORY]; /* could run and did not */
	unsigned int asides;                              /* ever */
	struct timed timed[TIMED_KINDS];
	struct timeline_waker waker[TIMELINE_WAKERS];
	unsigned int wakers;
	int64_t other_wakers; /* that had no room */
	struct timeline_inversion inversion[TIMELINE_WAKERS];
	unsigned int inversions;
};

/* `waker` is the timeline of who woke it, if that is a thread of this process. */
void timeline_add(struct timeline *t, const struct timeline_record *r,
		  const struct timeline *waker);

extern const char *const timeline_kind_names[TIMED_KINDS];

#endif
