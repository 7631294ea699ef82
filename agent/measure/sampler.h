/* SPDX-License-Identifier: MIT */
/*
 * sampler - one measuring thread: sleeps to absolute times and records how late it ran.
 *
 * The supervisor prepares a sampler, starts its thread, lets all threads go together,
 * watches `progress` while they run, and reads everything else after joining.
 *
 * Between the go and the end the thread makes one clock_nanosleep() and one vDSO clock
 * read per sample: no lock, no allocation, no other system call. What it touches is
 * locked and prefaulted.
 */
#ifndef SAMPLER_H
#define SAMPLER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "machine/cpulist.h"
#include "measure/hist.h"
#include "measure/samples.h"
#include "thread/clock.h"
#include "thread/policy.h"
#include "thread/usage.h"
#include "trace/candidates.h"
#include "trace/worst.h"

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2,
	       "the sampler would take a hidden lock for each 64-bit counter");

/* What the supervisor may look at during the run. One writer: the sampler. */
struct progress {
	_Alignas(64) _Atomic uint64_t samples;
	_Atomic uint64_t missed_periods;
	/* Largest latency since the supervisor last took it; 0 if there was none. */
	_Atomic int64_t window_max_ns;
	/* Samples from this one on, and early ones, take the slow path; the supervisor
	 * sets it to 0 when it takes the maximum: the next sample is a new one. */
	_Atomic uint64_t rare_ns;
	/* A new maximum: odd while the three fields below are being written. */
	_Atomic uint32_t record_version;
	_Atomic uint64_t record_seq;
	_Atomic int64_t record_expiry_ns;
	_Atomic int64_t record_wake_ns;
	_Atomic bool done;
};

enum sampler_step {
	SAMPLER_STARTING,
	SAMPLER_READY,
	SAMPLER_FAILED,
};

struct eventway;
struct timerlat;

struct sampler {
	struct progress progress;

	/* set by the supervisor before the thread starts */
	_Alignas(64) int cpu; /* -1: not pinned */
	struct policy policy;
	int64_t interval_ns;
	const _Atomic bool *stop;
	struct candidates *candidates; /* NULL: nobody keeps traces */
	struct samples *samples;       /* NULL: nobody keeps each wake-up */
	/* NULL: it is woken by its own timer; else it sends or receives the events of
	 * its way, see eventway.h */
	void (*loop)(struct sampler *s);
	struct eventway *way;
	bool is_stimulus;
	const char *name;
	int reports_fd; /* of the tracers hwlat and timerlat */
	struct timerlat *timerlat;

	/* set by the supervisor before the go */
	int64_t start_ns; /* releases are due at start + k * interval, k = 1, 2, ... */
	int64_t end_ns;   /* the last release; moved forward if the run is stopped */

	/* release by the thread, acquire by the supervisor: got and failure are there */
	_Atomic int step;
	/* release by the supervisor, acquire by the thread: start_ns and end_ns are there */
	_Atomic bool go;

	/* written by the thread; failure and got_* before step, the rest before its end */
	const char *failed_at;
	int failure; /* errno */
	struct refusal refusal;
	int tid;
	struct policy got_policy;
	struct cpulist got_affinity;
	int64_t got_timer_slack_ns;

	uint64_t overruns; /* samples of a whole interval or more */
	uint64_t
		interrupted_sleeps; /* sleeps that a signal ended and that were resumed */
	uint64_t silent; /* periods in which the tracer hwlat reported nothing */
	struct wide missed_periods_sum_ns;
	struct usage usage;
	struct clock_reads reads_before, reads_after;
	struct clock_cost clock_before, clock_after; /* by the supervisor, of these */
	struct worst worst;
	struct hist hist;

	pthread_t thread;
};

/* Allocates n samplers with their stacks, prefaulted. NULL: errno says why. */
struct sampler *sampler_alloc(unsigned int n);
void sampler_free(struct sampler *s, unsigned int n);

/* Starts the i-th thread: it sets itself up, measures the clock, and waits for the go.
 * Returns 0 or -errno. */
int sampler_start(struct sampler *all, unsigned int i, unsigned int n);

/* Waits for the end of the thread. */
void sampler_join(struct sampler *s);

/* Waits until the thread is ready or has failed; returns its step, which is
 * SAMPLER_STARTING if something else has had its CPU until then. */
enum sampler_step sampler_wait_ready(struct sampler *s, int64_t until_ns);

/* Ends the sleep of a thread after *stop was set. */
void sampler_wake(struct sampler *s);

/* Copies the last maximum; false if there is none newer than *version. */
bool sampler_read_record(struct sampler *s, uint32_t *version, struct wakeup *out);

/* --- one sample into the figures, whatever has woken the thread: take.c ---------------- */

#define relaxed(object) atomic_load_explicit(&(object), memory_order_relaxed)
#define relax(object, desired)                                                         \
	atomic_store_explicit(&(object), desired, memory_order_relaxed)

/* Counts the periods from next_ns to now_ns as missed, each with its lateness. Returns
 * the next one. */
int64_t take_missed(struct sampler *s, int64_t next_ns, int64_t now_ns);

/* Whether a sample is a maximum of its second, among the worst, early, or as long as an
 * interval: a handful in each second. One comparison for all. */
static inline bool take_is_rare(const struct sampler *s, int64_t latency_ns)
{
	return (uint64_t)latency_ns >= relaxed(s->progress.rare_ns);
}

/* Of those: the slow path. */
void take_rare(struct sampler *s, const struct wakeup *w);

/* Any sample, into the figures alone: not among the worst. */
void take_figures(struct sampler *s, int64_t latency_ns);

/* Of all others. */
static inline void take_usual(struct sampler *s, int64_t latency_ns)
{
	hist_add_usual(&s->hist, latency_ns);
	relax(s->progress.samples, relaxed(s->progress.samples) + 1);
}

/* By the supervisor: the largest latency since the last call. */
int64_t take_window_max(struct progress *p);

/* Moves along by comparison, without a division. 64 bits: where long has 32, tv_nsec
 * cannot hold the sum with an interval of more than a second. */
static inline void take_advance(struct timespec *t, int64_t by_ns)
{
	int64_t nsec = t->tv_nsec + by_ns;

	while (nsec >= NS_PER_S) {
		nsec -= NS_PER_S;
		t->tv_sec++;
	}
	t->tv_nsec = (long)nsec;
}

#endif
