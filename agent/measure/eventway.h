/* SPDX-License-Identifier: MIT */
/*
 * eventway - the events of one measuring thread, from its stimulus thread.
 *
 * The stimulus thread sleeps to the absolute grid, reads the clock and sends. The
 * measuring thread waits, is woken, reads the same clock and looks up when that event
 * was sent: the latency is from just before the call of one to the return of the other.
 * Both are samplers, with the loops below.
 *
 * Each event has a number, by which events that are lost, doubled or out of order are
 * seen. The stimulus sends nothing while all places have events on their way, as if the
 * queue of the kind were full: a way that has lost all of them takes no more.
 *
 * A way that is interrupted may be silent: no call fails, and nothing comes. The latencies
 * tell it from a receiver that does not run, whose events wait for it.
 */
#ifndef EVENTWAY_H
#define EVENTWAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "measure/eventkind.h"
#include "measure/sampler.h"

#define EVENT_SLOTS 1024
#define EVENT_LAST  (UINT64_C(1) << 63)

struct eventway {
	const struct event_kind *kind;
	unsigned int places; /* of EVENT_SLOTS, those that its kind can use */
	bool opened;

	/* by the stimulus; its own counts are read after its end */
	_Alignas(64) _Atomic uint64_t sent; /* with EVENT_LAST: no more will be */
	uint64_t full;   /* periods without an event: the way was full */
	uint64_t unsent; /* periods that the stimulus itself missed */
	int64_t stimulus_late_ns;
	_Atomic int send_failure; /* errno */
	uint32_t stuck_at;        /* 1 more than the event that could not be sent ... */
	int64_t stuck_since_ns, stuck_ns; /* ... since when; the longest such time */

	/* by the receiver */
	_Alignas(64) _Atomic uint64_t taken; /* events below are no longer needed */
	_Atomic int receive_failure;         /* errno */
	uint64_t lost;                       /* numbers that were left out so far */
	uint64_t doubled, reordered;
	int64_t silent_ns; /* the longest time from an event that was lost to the next */
	/* the number, and 1, that each place has left out last: it may come yet */
	uint64_t left_out[EVENT_SLOTS];

	/* by the supervisor: what has not come by now is lost */
	_Alignas(64) _Atomic bool closing;

	/* by the stimulus: when, with EVENT_LAST as above, and the period on the grid, from
	 * 1. A place that waits for its event looks as if it was sent long ago. */
	_Atomic uint64_t sent_ns[EVENT_SLOTS];
	_Atomic uint64_t seq[EVENT_SLOTS];
	struct event_ends ends;
};

/* n ways of a kind, prefaulted. NULL: errno says why. */
struct eventway *eventways_alloc(unsigned int n, const struct event_kind *kind);

/* The loops of the two samplers of a way. */
void eventway_send_until_end(struct sampler *stimulus);
void eventway_receive_until_end(struct sampler *receiver);

/* By the supervisor: ends a wait. With lost: what has not come is lost. */
void eventway_end_wait(struct eventway *w, struct sampler *receiver, bool lost);

/* After both have ended: what was sent and has not come is lost, what found the way full
 * too, and the grid of the receiver ends where the stimulus ended. A way that was silent
 * until then has broken. */
void eventway_settle(struct eventway *w, struct sampler *receiver,
		     const struct sampler *stimulus);

/* errno of a way that broke, 0 if none did; *what is the end that did. */
int eventway_failure(const struct eventway *w, const char **what);

#endif
