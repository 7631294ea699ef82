/* SPDX-License-Identifier: MIT */
#include "cycles/cycles.h"

#include <stddef.h>
#include <stdlib.h>

#define SAME_CLOCK_NS 10000000 /* a timer's clock is CLOCK_MONOTONIC, or far from it */

bool cycles_add(struct cycles *c, int tid)
{
	if (c->threads == CYCLES_MAX_THREADS)
		return false;
	c->thread[c->threads++] = (struct cycle_thread){ .tid = tid };
	return true;
}

static struct cycle_thread *find(struct cycles *c, int tid)
{
	for (unsigned int i = 0; i < c->threads; i++)
		if (c->thread[i].tid == tid)
			return &c->thread[i];
	return NULL;
}

/* One that has the place of another replaces it: they are a few of each thread. */
static struct cycle_timer *timer_at(struct cycles *c, uint64_t timer)
{
	return &c->timer[(timer >> 4 ^ timer >> 12) & (CYCLES_TIMERS - 1)];
}

static struct cycle_timer *known_timer(struct cycles *c, uint64_t timer)
{
	struct cycle_timer *t = timer_at(c, timer);

	return t->timer == timer ? t : NULL;
}

static void begin(struct cycle_thread *t, const struct pick *p, struct cycle_timer *by)
{
	t->open = true;
	t->run = (struct cyclerun){ .tid = t->tid,
				    .cpu = p->cpu,
				    .woken_ns = p->at_ns,
				    .flags = t->gap ? CYCLE_GAP : 0 };
	t->gap = false;
	if (!by)
		return;
	by->wakes = true;
	if (by->due_ns > 0 && by->due_ns <= p->at_ns) {
		t->run.due_ns = by->due_ns;
		t->run.armed_ns = by->armed_ns;
		t->run.flags |= by->relative ? CYCLE_RELATIVE : 0;
	}
	by->due_ns = 0;
}

static void finish(struct cycles *c, struct cycle_thread *t, int64_t at_ns)
{
	if (!t->open)
		return;
	t->open = false;
	t->run.out_ns = at_ns;
	/* less than nothing where it was preempted after it had set its timer */
	t->run.ran_ns += at_ns - (t->state == THREAD_RUNNING ? t->running_since_ns
							     : t->preempted_at_ns);
	if (t->run.flags & CYCLE_CUT) {
		c->cut++;
		t->run.in_ns = t->run.ran_ns = 0;
	}
	c->done(c->context, &t->run);
}

/* What it does itself shows that it runs, though the switch to it was not recorded. */
static void runs_unseen(struct cycle_thread *t, int64_t at_ns)
{
	if (t->state != THREAD_READY)
		return;
	t->run.flags |= CYCLE_CUT;
	t->state = THREAD_RUNNING;
	t->running_since_ns = at_ns;
}

static void cut(struct cycles *c, struct cycle_thread *t)
{
	c->cut += t->open;
	t->open = false;
	t->gap = true;
	t->state = THREAD_UNKNOWN;
}

/* It goes on at once: what it did ended when it set the timer, or when it asked. */
static void go_on(struct cycles *c, struct cycle_thread *t, const struct pick *p,
		  struct cycle_timer *by, int64_t ended_ns)
{
	if (!t->open || ended_ns < t->run.woken_ns) {
		by->due_ns = 0;
		return;
	}
	finish(c, t, ended_ns);
	begin(t, p, by);
	t->run.flags |= CYCLE_NO_SLEEP;
	if (t->state == THREAD_RUNNING)
		t->run.in_ns = t->running_since_ns = p->at_ns;
}

static void take_waking(struct cycles *c, struct cycle_thread *t, const struct pick *p)
{
	struct cycle_timer *by = c->callback[p->cpu].timer;

	if (by && c->callback[p->cpu].by != p->by)
		by = NULL;
	if (t->state == THREAD_ASLEEP) {
		begin(t, p, by);
		t->state = THREAD_READY;
	} else if (by && by->due_ns > 0) {
		go_on(c, t, p, by, by->armed_ns);
	}
}

static void take_in(struct cycle_thread *t, const struct pick *p)
{
	if (t->open && !t->run.in_ns)
		t->run.in_ns = p->at_ns;
	t->run.cpu = p->cpu;
	t->running_since_ns = p->at_ns;
	t->state = THREAD_RUNNING;
}

static void take_out(struct cycles *c, struct cycle_thread *t, const struct pick *p)
{
	runs_unseen(t, p->at_ns);
	if (t->state != THREAD_RUNNING) {
		cut(c, t);
		t->state = p->runnable ? THREAD_UNKNOWN : THREAD_ASLEEP;
		return;
	}
	if (p->runnable) {
		t->run.ran_ns += p->at_ns - t->running_since_ns;
		t->run.preempted++;
		t->preempted_at_ns = p->at_ns;
		t->state = THREAD_READY;
		return;
	}
	finish(c, t, p->at_ns);
	t->state = THREAD_ASLEEP;
}

/* A timerfd that expired while its thread ran is set again by the read that takes it.
 * One that sets itself again does so in an interrupt, or in a thread of the kernel. */
static void take_armed(struct cycles *c, struct cycle_thread *t, const struct pick *p)
{
	struct cycle_timer *timer = timer_at(c, p->timer);
	const bool known = timer->timer == p->timer;

	if (!t && !known)
		return;
	if (t)
		runs_unseen(t, p->at_ns);
	if (t && known && timer->wakes && timer->due_ns > 0 &&
	    t->state == THREAD_RUNNING)
		go_on(c, t, p, timer, p->at_ns);
	*timer = (struct cycle_timer){
		.timer = p->timer,
		.armed_ns = p->at_ns,
		.when_ns = p->when_ns,
		.relative = p->relative,
		.waiting = true,
		.wakes = known && timer->wakes,
	};
}

/* Of another clock it is known how late the callback is, whatever that clock shows. */
static void take_expiring(struct cycles *c, const struct pick *p)
{
	struct cycle_timer *timer = known_timer(c, p->timer);

	c->callback[p->cpu].timer = timer;
	c->callback[p->cpu].by = p->by;
	if (!timer || !timer->waiting)
		return;
	timer->waiting = false;
	if (llabs(p->at_ns - p->when_ns) <= SAME_CLOCK_NS)
		timer->due_ns = timer->when_ns;
	else if (p->when_ns >= timer->when_ns)
		timer->due_ns = p->at_ns - (p->when_ns - timer->when_ns);
}

static void take_lost(struct cycles *c, const struct pick *p)
{
	for (unsigned int i = 0; i < c->threads; i++)
		cut(c, &c->thread[i]);
	for (unsigned int i = 0; i < CYCLES_TIMERS; i++)
		c->timer[i] = (struct cycle_timer){ 0 };
	for (unsigned int i = 0; i < CPULIST_MAX_CPUS; i++)
		c->callback[i].timer = NULL;
	if (p->when_ns > c->blind_until_ns)
		c->blind_until_ns = p->when_ns;
}

void cycles_take(struct cycles *c, const struct pick *p)
{
	struct cycle_thread *t = p->tid ? find(c, p->tid) : NULL;

	if (p->kind == PICK_LOST)
		take_lost(c, p);
	if (p->at_ns < c->blind_until_ns || p->cpu >= CPULIST_MAX_CPUS)
		return;
	if (c->until_ns && p->at_ns >= c->until_ns)
		return;
	if (p->kind == PICK_EXPIRING)
		take_expiring(c, p);
	else if (p->kind == PICK_EXPIRED)
		c->callback[p->cpu].timer = NULL;
	else if (p->kind == PICK_ARMED)
		take_armed(c, t, p);
	if (!t)
		return;
	if (p->kind == PICK_WAKING)
		take_waking(c, t, p);
	else if (p->kind == PICK_IN)
		take_in(t, p);
	else if (p->kind == PICK_OUT)
		take_out(c, t, p);
}

void cycles_end(struct cycles *c)
{
	for (unsigned int i = 0; i < c->threads; i++)
		cut(c, &c->thread[i]);
}
