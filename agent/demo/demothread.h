/* SPDX-License-Identifier: MIT */
/*
 * demothread - one thread of a demonstration: follows its script and notes what it did.
 *
 * It has its policy, its CPU and all its memory before any thread begins, and writes
 * into room of its own while it goes: it prints nothing. All is read after its end.
 */
#ifndef DEMOTHREAD_H
#define DEMOTHREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "demo/demoscript.h"
#include "machine/cpulist.h"
#include "thread/policy.h"
#include "thread/usage.h"

#define DEMO_MAX_THREADS 6
#define DEMO_MAX_EVENTS  6000
#define DEMO_UNIT_NS     INT64_C(1000000) /* of CPU time: a character of the talk */
#define DEMO_PAUSE_NS    INT64_C(50000)   /* longer between two looks: it did not run */

#ifndef DEMO_STACK_BYTES /* sanitizers need more */
#define DEMO_STACK_BYTES (64 * 1024)
#endif

enum demo_event_kind {
	DEMO_EVENT_WOKE, /* value: when it was due */
	DEMO_EVENT_RAN,  /* at: from, value: until */
	DEMO_EVENT_UNIT, /* one more DEMO_UNIT_NS of CPU time; value: how many */
	DEMO_EVENT_WANT, /* a mutex; value: which */
	DEMO_EVENT_GOT,
	DEMO_EVENT_LEFT,
	DEMO_EVENT_TOOK,   /* at: from, value: ns that touching memory took */
	DEMO_EVENT_FAULTS, /* value: page faults in that time */
	DEMO_EVENT_DONE,   /* all of its script; value: 0, or 1 if it was stopped */
};

struct demo_event {
	int64_t at_ns; /* since the start of the demonstration, as all times here */
	int64_t value;
	uint16_t step;
	uint8_t kind;
};

enum demo_state { DEMO_STARTING, DEMO_READY, DEMO_FAILED };

/* What all threads of a demonstration share. */
struct demo_stage {
	pthread_mutex_t lock[DEMOSCRIPT_LOCKS];
	int cpu;
	struct cpulist cpus; /* where a thread may be that cannot be pinned */
	int64_t start_ns;
	_Atomic bool go;
	_Atomic bool stop; /* written by the watchdog; a flag, it orders nothing */
};

struct demo_thread {
	struct demo_stage *stage;
	struct demo_script script;
	pthread_t thread;
	int tid;
	struct policy got;
	struct cpulist affinity;
	int64_t slice_ns; /* of rr; 0 of others */
	struct refusal refusal;
	const char *failed_at;
	int failure;
	struct usage usage;
	char *pool; /* for DEMO_POOL: as much as its script touches */
	int64_t pool_bytes;
	int64_t ran_from_ns, ran_to_ns; /* while it computes */
	int64_t units;
	_Atomic int state;
	_Atomic bool done;  /* with its script */
	_Atomic bool ended; /* done or not: it can be joined */
	unsigned int events;
	int64_t events_lost;
	struct demo_event event[DEMO_MAX_EVENTS];
};

/* The word of the contract. */
const char *demothread_word(enum demo_event_kind kind);

/* Room for so many threads and their stacks, touched. NULL if there is none. */
struct demo_thread *demothread_alloc(unsigned int n);
void demothread_free(struct demo_thread *all, unsigned int n);

/* Starts the thread i of n. Returns 0 or -errno. */
int demothread_start(struct demo_thread *all, unsigned int i, unsigned int n);

#endif
