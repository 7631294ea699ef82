/* SPDX-License-Identifier: MIT */
/*
 * cycles - from the events of watched threads to their runs: woken, running, asleep.
 *
 * A run begins when the thread is woken and ends when it goes to sleep. It has the time
 * that its timer was set to, where a timer of the process woke it. What cannot be known,
 * because events were lost or recording began within it, is no run: it is counted. The
 * kernel leaves out a switch now and then (seen on 6.18, one in 300 between the threads
 * of a busy machine): then the run has no time at which it got the CPU. Pure; events come
 * in the order of their times.
 */
#ifndef CYCLES_H
#define CYCLES_H

#include <stdbool.h>
#include <stdint.h>

#include "cycles/cyclepick.h"
#include "machine/cpulist.h"

#define CYCLES_MAX_THREADS 128
#define CYCLES_TIMER_SETS  512 /* 2^n */
#define CYCLES_TIMER_WAYS  8   /* timers that may share a place */
#define CYCLES_WAKING      8
#define CYCLES_WAITS       8 /* of a thread that are told apart */

enum cycle_flag {
	CYCLE_RELATIVE = 1, /* its timer was set to a time from now on */
	CYCLE_NO_SLEEP = 2, /* the time had passed: it went on without a sleep */
	CYCLE_CUT = 4,      /* the switch to it was not recorded: in_ns is not known */
	CYCLE_GAP = 8,      /* events were lost before it, and runs with them */
	CYCLE_BETWEEN = 16, /* woken within a sleep, it went on with that sleep */
	CYCLE_WITHIN = 32,  /* another woke it, and the time that it waited for came */
	CYCLE_WAIT = 256,   /* times the number of the wait of cyclewaits.h in which it
			     * slept, each by its call and first argument; 0: none */
};

struct cyclerun {
	int tid;
	unsigned int cpu; /* the last one: the index of cyclepick_page() */
	int64_t armed_ns; /* when its timer was set; 0: no timer of a time that came */
	int64_t due_ns;   /* what it was set to, on CLOCK_MONOTONIC; 0: unknown */
	int64_t woken_ns, in_ns, out_ns;
	int64_t ran_ns; /* on a CPU, with the interrupts that came meanwhile */
	unsigned int preempted;
	unsigned int flags;
};

typedef void cycles_done(void *context, const struct cyclerun *run);

enum thread_state { THREAD_UNKNOWN, THREAD_ASLEEP, THREAD_READY, THREAD_RUNNING };

struct cycle_thread {
	int tid;
	enum thread_state state;
	bool open; /* run has a begin */
	bool gap;  /* before the next run: events were lost */
	int64_t running_since_ns, preempted_at_ns;
	int64_t woken_ns;  /* while it ran, so the records say; 0: it was not */
	int64_t asked_ns;  /* what its last timer was set to, of its clock; 0: none */
	int64_t within_ns; /* the same, of the sleep that its run came within */
	/* when these were set; 0: to no time, but for an interval */
	int64_t asked_at_ns, within_at_ns;
	uint64_t waits; /* in this it is; 0: in none */
	uint64_t wait[CYCLES_WAITS];
	unsigned int
		slept_in; /* the number of the last one that it slept in; 0: none */
	struct cyclerun run;
};

struct cycle_timer {
	uint64_t timer;    /* 0: none */
	uint64_t function; /* its callback */
	int by;            /* the watched thread that set it; 0: none */
	int64_t armed_ns, when_ns;
	int64_t step_ns; /* the least between two times that it was set to; 0: unknown */
	bool relative;
	bool waiting;   /* armed, and not yet expired */
	bool wakes;     /* it has woken a watched thread: others serve the scheduler */
	int64_t due_ns; /* on CLOCK_MONOTONIC; when it has expired and woken nobody */
};

struct cycles {
	struct cycle_thread thread[CYCLES_MAX_THREADS];
	unsigned int threads;
	struct cycle_timer timer[CYCLES_TIMER_SETS][CYCLES_TIMER_WAYS];
	uint64_t waking[CYCLES_WAKING]; /* callbacks that have woken a watched thread */
	unsigned int wakings;
	int own_tid; /* of the agent, which slept until own_ns: 0: it did not */
	int64_t own_ns;
	uint64_t sleeper; /* the callback of its timer, and of all such sleeps */
	bool sleeper_known;
	struct {
		struct cycle_timer *timer; /* NULL: no callback, or not of ours */
		int by;
	} callback[CPULIST_MAX_CPUS];
	int64_t blind_until_ns;
	int64_t until_ns; /* the end of recording: no event since then counts; 0: none */
	uint64_t cut;     /* runs that lost events, or the end of recording, cut */
	cycles_done *done;
	void *context;
};

/* False if there is no room. */
bool cycles_add(struct cycles *c, int tid);

void cycles_take(struct cycles *c, const struct pick *pick);

/* No more comes: counts the runs that had no end. */
void cycles_end(struct cycles *c);

#endif
