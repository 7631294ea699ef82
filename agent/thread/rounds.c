/* SPDX-License-Identifier: MIT */
#include "thread/rounds.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "thread/clock.h"

#define NICE (-10) /* before the load, which may have many threads on each CPU */

static void do_round(struct rounds *r)
{
	int64_t now_ns = clock_now_ns();

	if (r->count++ && now_ns - r->last_ns > r->longest_gap_ns)
		r->longest_gap_ns = now_ns - r->last_ns;
	r->last_ns = now_ns;
	r->round(r->context);
}

static void *run(void *arg)
{
	struct rounds *r = arg;
	int64_t next_ns = clock_now_ns();
	sigset_t all;

	/* signals are the supervisor's */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, r->name, 0, 0, 0);
	setpriority(PRIO_PROCESS, 0, NICE);

	while (!atomic_load_explicit(&r->stop, memory_order_relaxed)) {
		struct timespec until;

		do_round(r);
		next_ns += r->period_ns;
		if (next_ns < r->last_ns)
			next_ns = r->last_ns + r->period_ns;
		until = ns_timespec(next_ns);
		clock_sleep_until(&until);
	}
	return NULL;
}

int rounds_start(struct rounds *r)
{
	int err = -pthread_create(&r->thread, NULL, run, r);

	r->running = !err;
	return err;
}

void rounds_stop(struct rounds *r)
{
	if (!r->running)
		return;
	atomic_store_explicit(&r->stop, true, memory_order_relaxed);
	pthread_join(r->thread, NULL);
	r->running = false;
	do_round(r);
}
