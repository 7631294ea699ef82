/* SPDX-License-Identifier: MIT */
#include "watch/watchthread.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "files/slurp.h"
#include "thread/clock.h"
#include "watch/flowevents.h"
#include "watch/perfevent.h"
#include "watch/watchflow.h"
#include "watch/watchreport.h"

#define FEW_THREADS  8
#define MANY_BYTES   (1 << 17) /* else: 33 MB for all */
#define SAMPLE_BYTES (PERFEVENT_STACK_BYTES + 512)
#define UNSENT       4 /* so many others are copied for each that is sent */

/* One that has executed a program has the number since. */
#define ANOTHER_THREAD (-ECHILD)

static void read_name(struct watch *w, struct watched *t)
{
	char path[64];
	long n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", w->pid, t->tid);
	n = slurp(path, t->name, sizeof(t->name));
	if (n > 0 && t->name[n - 1] == '\n')
		t->name[n - 1] = '\0';
}

void watchthread_go_on(struct watch *w, struct watched *t, unsigned int kind)
{
	const bool by_hand = w->kind[kind].by_hand;
	const uint64_t room = w->ring_bytes / SAMPLE_BYTES;
	const uint64_t most = room / (w->samplers ? w->samplers : 1);
	const uint64_t sampled = t->sampled[kind];
	const bool enough = sampled >= w->stacks_each ||
			    w->stacks >= WATCHTHREAD_MAX_STACKS ||
			    t->unsent[kind] >= UNSENT * w->stacks_each;
	const uint64_t left = enough ? 0 : w->stacks_each - sampled;
	unsigned int events;
	struct perfevent *e = watched_events(w, t, kind, &events);

	for (; events-- > 0; e++) {
		if (e->sampler_fd < 0)
			continue;
		if (by_hand && e->running == enough)
			perfevent_run(e, !enough);
		else if (!by_hand && left && sampled >= e->granted)
			perfevent_grant(e, (unsigned int)(left < most ? left
							  : most      ? most
								      : 1));
	}
}

static int open_own(struct watch *w, struct watched *t, unsigned int i)
{
	struct perfevent *e = &t->event[i];
	int err = perfevent_open(e, &w->kind[i], t->tid, PERFEVENT_OWN);

	if (!err && e->sampler_fd >= 0)
		err = perfring_join(w->kind[i].type == PERF_TYPE_SOFTWARE ? &t->ring
									  : &t->probes,
				    e, w->ring_bytes);
	if (err == -EINVAL && e->sampler_fd >= 0)
		err = ANOTHER_THREAD;
	if (err)
		perfevent_close(e);
	return err;
}

static int open_event(struct watch *w, struct watched *t, unsigned int i)
{
	struct watchplaces *p = &w->places;
	unsigned int events;
	struct perfevent *e = watched_events(w, t, i, &events);
	int err = w->refused[i];

	if (err)
		return err;
	if (e == &t->event[i])
		return open_own(w, t, i);
	for (unsigned int at = 0; !err && at < events; at++) {
		err = perfevent_open(&e[at], &w->kind[i], t->tid, p->cpu[at]);
		if (!err && e[at].sampler_fd >= 0)
			err = perfring_join(&p->stacks[at], &e[at], 0);
	}
	p->err = err;
	return err;
}

static void close_events(struct perfevent *e, size_t count)
{
	for (size_t i = 0; i < count; i++)
		perfevent_close(&e[i]);
}

static void leave_cpus(struct watch *w, struct watched *t)
{
	if (t->of_cpu)
		close_events(t->of_cpu, (size_t)w->kinds * w->places.cpus);
	free(t->of_cpu);
	t->of_cpu = NULL;
	w->places.threads -= t->on_cpus;
	t->on_cpus = false;
}

static void choose_place(struct watch *w, struct watched *t)
{
	const size_t count = (size_t)w->kinds * w->places.cpus;
	const bool real_time = flowevents_is_real_time(t->tid);

	if (watchplaces_have_room(&w->places, real_time))
		t->of_cpu = malloc(count * sizeof(*t->of_cpu));
	if (!t->of_cpu) {
		w->places.elsewhere += real_time;
		return;
	}
	for (size_t i = 0; i < count; i++)
		t->of_cpu[i] = (struct perfevent){ .counter_fd = -1, .sampler_fd = -1 };
	t->on_cpus = true;
	w->places.threads++;
}

static bool is_there(const struct watch *w, const struct watched *t)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", w->pid, t->tid);
	return access(path, F_OK) == 0;
}

/* A kind that is refused for a thread is not tried for others: the cause is the same,
 * but where the thread has ended. The last ones first: a probe makes the page that it
 * is in fault once, and that is to be seen. */
static int open_events(struct watch *w, struct watched *t)
{
	/* from here on it is known when it executes a program; if it cannot be, the first
	 * sampler makes the ring */
	if (!t->ring.map &&
	    perfring_make_of_thread(&t->ring, t->tid, w->ring_bytes) == -ESRCH &&
	    !is_there(w, t))
		return -ESRCH;
	for (unsigned int i = w->kinds; i-- > 0;) {
		int err;

		if (t->own && w->kind[i].path) /* no wake-up, and slow to close */
			continue;
		err = open_event(w, t, i);

		if (err && t->on_cpus && w->places.err) { /* then all are its own */
			leave_cpus(w, t);
			w->places.elsewhere += flowevents_is_real_time(t->tid);
			return open_events(w, t);
		}
		if (err == ANOTHER_THREAD || (err == -ESRCH && !is_there(w, t)))
			return err;
		/* a file that may not be looked up is "no such process", too */
		w->refused[i] = err == -ESRCH ? -EPERM : err;
	}
	return 0;
}

/* Samplers first: what is counted has a stack. */
static void begin_events(struct watch *w, struct watched *t)
{
	for (unsigned int i = 0; i < w->kinds; i++)
		watchthread_go_on(w, t, i);
	for (unsigned int i = 0; i < w->kinds; i++) {
		unsigned int events;
		struct perfevent *e = watched_events(w, t, i, &events);

		for (; events-- > 0; e++)
			if (e->counter_fd >= 0)
				perfevent_count_on(e);
	}
}

void watchthread_close(struct watch *w, struct watched *t)
{
	watchflow_detach(w, t);
	perfring_close(&t->ring);
	perfring_close(&t->probes);
	close_events(t->event, w->kinds);
	leave_cpus(w, t);
	free(t);
}

int watchthread_attach(struct watch *w, int tid, bool own)
{
	struct watched *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->tid = tid;
	t->own = own;
	for (unsigned int i = 0; i < w->kinds; i++)
		t->event[i].counter_fd = t->event[i].sampler_fd = -1;
	flowevents_init(&t->flow);
	if (w->threads >= FEW_THREADS)
		w->ring_bytes = MANY_BYTES;
	read_name(w, t);
	choose_place(w, t);
	if (open_events(w, t)) { /* it ended meanwhile */
		watchthread_close(w, t);
		w->vanished++;
		return 0;
	}
	t->alive = true;
	t->from_ns = clock_now_ns();
	w->thread[w->threads++] = t;
	watchflow_attach(w, t); /* first: of what has a stack the begin is known */
	begin_events(w, t);
	return 0;
}
