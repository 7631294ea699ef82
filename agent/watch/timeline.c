/* SPDX-License-Identifier: MIT */
#include "watch/timeline.h"

#include <string.h>

const char *const timeline_kind_names[TIMED_KINDS] = {
	"minor_fault", "major_fault", "memory_call", "blocking_call",
	"lock_wait",   "preempted",   "set_aside",   "kernel_wait",
};

static void add_time(struct timed *timed, int64_t from_ns, int64_t to_ns,
		     const char *in)
{
	const size_t size = strnlen(in, sizeof(timed->worst_in) - 1);
	const int64_t lasted_ns = to_ns - from_ns;

	if (lasted_ns < 0)
		return;
	timed->count++;
	timed->total_ns += lasted_ns;
	if (timed->count > 1 && lasted_ns <= timed->worst_ns)
		return;
	timed->worst_ns = lasted_ns;
	timed->worst_at_ns = from_ns;
	/* a name may be in the same timeline */
	memmove(timed->worst_in, in, size);
	timed->worst_in[size] = '\0';
}

static struct timeline_interval *last_aside(struct timeline *t)
{
	return &t->aside[(t->asides - 1) % TIMELINE_HISTORY];
}

static void leave(struct timeline *t, const struct timeline_record *r)
{
	t->priority = r->priority;
	t->known = true;
	t->is_out = true;
	t->out_ns = r->t_ns;
	t->runnable = r->runnable;
	t->held = r->held;
	if (!r->runnable)
		return;
	t->asides++;
	*last_aside(t) =
		(struct timeline_interval){ .from_ns = r->t_ns, .by = r->other };
}

static void come_back(struct timeline *t, const struct timeline_record *r)
{
	if (t->is_out && t->runnable) {
		struct timeline_interval *aside = last_aside(t);
		const bool ordinary = aside->by.priority >= TIMELINE_LOWEST;

		aside->to_ns = r->t_ns;
		add_time(&t->timed[ordinary ? TIMED_SET_ASIDE : TIMED_PREEMPTED],
			 t->out_ns, r->t_ns, aside->by.name);
	}
	t->is_out = false;
}

static void end_call(struct timeline *t, int64_t now_ns)
{
	if (t->call_ns && t->call_kind < TIMED_KINDS)
		add_time(&t->timed[t->call_kind], t->call_ns, now_ns, t->call);
	t->call_ns = 0;
}

static void end_fault(struct timeline *t, enum timeline_kind kind, int64_t now_ns)
{
	if (t->fault_ns)
		add_time(&t->timed[kind], t->fault_ns, now_ns, "");
	t->fault_ns = 0;
}

static void count_waker(struct timeline *t, const struct timeline_record *r)
{
	const bool softirq = r->context == IN_SOFTIRQ;
	struct timeline_waker *w = t->waker;

	/* the thread that a softirq interrupts is any */
	while (w < t->waker + t->wakers &&
	       (w->softirq != softirq || w->by.tid != r->other.tid))
		w++;
	if (w == t->waker + TIMELINE_WAKERS) {
		t->other_wakers++;
		return;
	}
	if (w == t->waker + t->wakers)
		t->waker[t->wakers++] =
			(struct timeline_waker){ .by = r->other, .softirq = softirq };
	w->count++;
}

static void count_inversion(struct timeline *t, const struct timeline_party *owner,
			    const struct timeline_interval *aside, int64_t from_ns,
			    int64_t to_ns)
{
	struct timeline_inversion *i = t->inversion;

	while (i < t->inversion + t->inversions &&
	       (i->owner.tid != owner->tid || i->by.tid != aside->by.tid))
		i++;
	if (i == t->inversion + TIMELINE_WAKERS)
		return;
	if (i == t->inversion + t->inversions)
		t->inversion[t->inversions++] =
			(struct timeline_inversion){ .owner = *owner, .by = aside->by };
	add_time(&i->waited, from_ns, to_ns, aside->by.name);
}

/* Who unlocks had the lock. While this thread waited, did one that is less urgent than
 * this one keep the owner from its CPU? */
static void look_for_inversion(struct timeline *t, const struct timeline_record *r,
			       const struct timeline *owner)
{
	for (unsigned int i = 0; i < TIMELINE_HISTORY && i < owner->asides; i++) {
		const struct timeline_interval *a = &owner->aside[i];
		const int64_t from_ns =
			a->from_ns > t->call_ns ? a->from_ns : t->call_ns;
		const int64_t to_ns =
			a->to_ns && a->to_ns < r->t_ns ? a->to_ns : r->t_ns;

		if (to_ns > from_ns && a->by.priority > r->priority)
			count_inversion(t, &r->other, a, from_ns, to_ns);
	}
}

static void wake(struct timeline *t, const struct timeline_record *r,
		 const struct timeline *waker)
{
	const bool of_lock = t->call_ns && t->call_kind == TIMED_LOCK_WAIT;

	t->priority = r->priority;
	t->known = true;
	if (t->is_out && t->held) {
		/* A lock of the kernel, or a device: whoever wakes it, the program
		 * did not make this thread depend on that one. */
		add_time(&t->timed[TIMED_KERNEL_WAIT], t->out_ns, r->t_ns,
			 r->other.name);
		return;
	}
	if (r->priority >= TIMELINE_LOWEST || r->context == IN_INTERRUPT)
		return;
	if (of_lock) {
		if (waker && r->context == IN_THREAD)
			look_for_inversion(t, r, waker);
	} else if (r->other.priority > r->priority) {
		count_waker(t, r);
	}
}

void timeline_add(struct timeline *t, const struct timeline_record *r,
		  const struct timeline *waker)
{
	switch (r->what) {
	case TIMELINE_OUT:
		leave(t, r);
		break;
	case TIMELINE_IN:
		come_back(t, r);
		break;
	case TIMELINE_CALL:
		t->call_ns = r->t_ns;
		t->call_kind = r->kind;
		t->call = r->call;
		break;
	case TIMELINE_RETURN:
		end_call(t, r->t_ns);
		break;
	case TIMELINE_FAULT:
		t->fault_ns = r->t_ns;
		break;
	case TIMELINE_MINOR:
		end_fault(t, TIMED_MINOR_FAULT, r->t_ns);
		break;
	case TIMELINE_MAJOR:
		end_fault(t, TIMED_MAJOR_FAULT, r->t_ns);
		break;
	case TIMELINE_WAKE:
		wake(t, r, waker);
		break;
	}
}
