/* SPDX-License-Identifier: MIT */
#include "cycles/cycles.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SAME_CLOCK_NS 10000000 /* a timer's clock is CLOCK_MONOTONIC, or far from it */
#define RESUMED_NS    100000   /* to ask again for the rest of an interval takes less */

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

static struct cycle_timer *set_of(struct cycles *c, uint64_t timer)
{
	return c->timer[(timer >> 4 ^ timer >> 12) & (CYCLES_TIMER_SETS - 1)];
}

static struct cycle_timer *known_timer(struct cycles *c, uint64_t timer)
{
	struct cycle_timer *set = set_of(c, timer);

	for (unsigned int i = 0; i < CYCLES_TIMER_WAYS; i++)
		if (set[i].timer == timer)
			return &set[i];
	return NULL;
}

/* Those on the stack of a thread leave a place with each sleep, as the kernel begins its
 * stacks at random: the oldest that waits for nothing makes room, else the oldest. */
static struct cycle_timer *room_for(struct cycles *c, uint64_t timer)
{
	struct cycle_timer *set = set_of(c, timer), *oldest = &set[0];
	struct cycle_thread *t;

	for (unsigned int i = 1; i < CYCLES_TIMER_WAYS; i++)
		if (set[i].waiting != oldest->waiting
			    ? oldest->waiting
			    : set[i].armed_ns < oldest->armed_ns)
			oldest = &set[i];
	t = oldest->waiting ? find(c, oldest->by) : NULL;
	if (t && t->asked_ns == oldest->when_ns) /* what wakes it next is not known */
		t->gap = true;
	return oldest;
}

/* Others serve the scheduler. */
static bool is_waking(const struct cycles *c, uint64_t function)
{
	for (unsigned int i = 0; i < c->wakings; i++)
		if (c->waking[i] == function)
			return true;
	return false;
}

/* Of a sleep: it ends with its expiry, and no later read takes that. */
static bool is_sleep(const struct cycles *c, const struct cycle_timer *timer)
{
	return c->sleeper_known && timer->function == c->sleeper;
}

static void begin(struct cycles *c, struct cycle_thread *t, const struct pick *p,
		  struct cycle_timer *by)
{
	t->open = true;
	t->run = (struct cyclerun){ .tid = t->tid,
				    .cpu = p->cpu,
				    .woken_ns = p->at_ns,
				    .flags = (t->gap ? CYCLE_GAP : 0) |
					     CYCLE_WAIT * t->slept_in };
	t->gap = false;
	t->woken_ns = 0;
	t->within_ns = t->asked_ns;
	t->within_at_ns = t->asked_at_ns;
	t->asked_ns = t->asked_at_ns = 0;
	if (!by)
		return;
	by->wakes = true;
	t->within_ns = t->within_at_ns = 0;
	if (c->wakings < CYCLES_WAKING && !is_waking(c, by->function))
		c->waking[c->wakings++] = by->function;
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
	begin(c, t, p, by);
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
		begin(c, t, p, by);
		t->state = THREAD_READY;
	} else if (by && by->due_ns > 0) {
		go_on(c, t, p, by, by->armed_ns);
	} else if (t->state == THREAD_RUNNING) {
		t->woken_ns = p->at_ns;
	}
}

/* It is switched to while it runs: the switch from it was not recorded. */
static void left_unseen(struct cycles *c, struct cycle_thread *t, const struct pick *p)
{
	if (t->woken_ns) {
		cut(c, t);
		begin(c, t, &(struct pick){ .at_ns = t->woken_ns, .cpu = p->cpu },
		      NULL);
	} else if (t->open) {
		t->run.flags |= CYCLE_CUT;
		t->run.flags &= ~(unsigned int)CYCLE_NO_SLEEP;
	}
}

static void take_in(struct cycles *c, struct cycle_thread *t, const struct pick *p)
{
	if (t->state == THREAD_RUNNING)
		left_unseen(c, t, p);
	if (t->open && !t->run.in_ns)
		t->run.in_ns = p->at_ns;
	t->run.cpu = p->cpu;
	t->running_since_ns = p->at_ns;
	t->state = THREAD_RUNNING;
}

/* Something else woke it before the time that it waited for, and that came before it
 * slept again: a cycle may begin then, if it is one of its period. */
static void note_time(struct cycle_thread *t, int64_t out_ns)
{
	if (!t->open || t->run.due_ns || !t->within_at_ns ||
	    t->within_ns <= t->run.woken_ns || t->within_ns >= out_ns)
		return;
	t->run.due_ns = t->within_ns;
	t->run.armed_ns = t->within_at_ns;
	t->run.flags |= CYCLE_WITHIN;
}

static unsigned int number_of(struct cycle_thread *t)
{
	unsigned int i = 0;

	if (!t->waits)
		return 0;
	while (i < CYCLES_WAITS && t->wait[i] && t->wait[i] != t->waits)
		i++;
	if (i == CYCLES_WAITS)
		return 0;
	t->wait[i] = t->waits;
	return i + 1;
}

static void take_out(struct cycles *c, struct cycle_thread *t, const struct pick *p)
{
	runs_unseen(t, p->at_ns);
	t->woken_ns = 0;
	if (!p->runnable)
		t->slept_in = number_of(t);
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
	note_time(t, p->at_ns);
	finish(c, t, p->at_ns);
	t->state = THREAD_ASLEEP;
}

/* A timerfd that expired while its thread ran is set again by the read that takes it: to
 * a multiple of its interval. A timer of a new sleep may have the place of an old one. */
static bool is_taken_late(const struct cycles *c, const struct cycle_timer *timer,
			  const struct cycle_thread *t, const struct pick *p)
{
	return !is_sleep(c, timer) && timer->wakes && timer->due_ns > 0 &&
	       t->state == THREAD_RUNNING && timer->step_ns > 0 &&
	       p->when_ns > timer->when_ns &&
	       (p->when_ns - timer->when_ns) % timer->step_ns == 0;
}

static int64_t step_of(const struct cycle_timer *before, const struct pick *p)
{
	const int64_t step_ns = before->timer ? p->when_ns - before->when_ns : 0;

	return step_ns > 0 && (!before->step_ns || step_ns < before->step_ns)
		       ? step_ns
		       : before->step_ns;
}

/* A signal or another event came within a sleep, and the thread asks for the rest. */
static void note_asked(struct cycle_thread *t, const struct pick *p)
{
	const int64_t later_ns = p->when_ns - t->within_ns;

	if (t->open && t->within_ns && later_ns >= 0 &&
	    later_ns <= p->at_ns - t->run.woken_ns + RESUMED_NS)
		t->run.flags |= CYCLE_BETWEEN;
	t->asked_ns = p->when_ns;
	t->asked_at_ns = p->relative ? 0 : p->at_ns;
}

/* One that sets itself again does so in an interrupt, or in a thread of the kernel. */
static void take_armed(struct cycles *c, struct cycle_thread *t, const struct pick *p)
{
	struct cycle_timer *timer = known_timer(c, p->timer);
	const struct cycle_timer before =
		timer ? *timer : (struct cycle_timer){ .timer = 0 };

	if (p->by == c->own_tid && p->when_ns == c->own_ns && c->own_ns) {
		c->sleeper = p->function;
		c->sleeper_known = true;
	}
	if (!t && !timer)
		return;
	if (t)
		runs_unseen(t, p->at_ns);
	if (t && timer && is_taken_late(c, timer, t, p))
		go_on(c, t, p, timer, p->at_ns);
	if (t && is_waking(c, p->function))
		note_asked(t, p);
	if (!timer)
		timer = room_for(c, p->timer);
	*timer = (struct cycle_timer){
		.timer = p->timer,
		.function = p->function,
		.by = t ? t->tid : before.by,
		.armed_ns = p->at_ns,
		.when_ns = p->when_ns,
		.step_ns = step_of(&before, p),
		.relative = p->relative,
		.waiting = true,
		.wakes = before.wakes,
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

/* A sleep whose thread was woken by something else just before, and has not gone on
 * since: when it does, the sleep is over. */
static void take_expired(struct cycles *c, const struct pick *p)
{
	struct cycle_timer *timer = c->callback[p->cpu].timer;
	struct cycle_thread *t = timer ? find(c, timer->by) : NULL;

	c->callback[p->cpu].timer = NULL;
	if (!timer || timer->due_ns <= 0 || !is_sleep(c, timer))
		return;
	if (t && t->open && !t->run.due_ns && t->within_ns == timer->when_ns) {
		if (t->run.in_ns) /* it runs, and would have taken its timer back */
			t->run.in_ns = p->at_ns;
		t->run.due_ns = timer->due_ns;
		t->run.armed_ns = timer->armed_ns;
		t->run.flags |= timer->relative ? CYCLE_RELATIVE : 0;
		t->within_ns = 0;
	}
	timer->due_ns = 0;
}

static void take_lost(struct cycles *c, const struct pick *p)
{
	for (unsigned int i = 0; i < c->threads; i++) {
		cut(c, &c->thread[i]);
		c->thread[i].waits = 0;
	}
	memset(c->timer, 0, sizeof(c->timer));
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
		take_expired(c, p);
	else if (p->kind == PICK_ARMED)
		take_armed(c, t, p);
	if (!t)
		return;
	if (p->kind == PICK_WAKING)
		take_waking(c, t, p);
	else if (p->kind == PICK_IN)
		take_in(c, t, p);
	else if (p->kind == PICK_OUT)
		take_out(c, t, p);
	else if (p->kind == PICK_WAITS || p->kind == PICK_GOES_ON)
		t->waits = p->wait;
}

void cycles_end(struct cycles *c)
{
	for (unsigned int i = 0; i < c->threads; i++)
		cut(c, &c->thread[i]);
}
