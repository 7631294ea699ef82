/* SPDX-License-Identifier: MIT */
#include "watch/timeline.h"

#include <errno.h>
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

static struct timeline_interval *last_off(struct timeline *t)
{
	return &t->off[(t->offs - 1) % TIMELINE_HISTORY];
}

static void leave(struct timeline *t, const struct timeline_record *r)
{
	t->priority = r->priority;
	t->known = true;
	t->is_out = true;
	t->out_ns = r->t_ns;
	t->woken_ns = 0;
	t->runnable = r->runnable;
	t->held = r->held;
	if (t->offs && !last_off(t)->to_ns)
		last_off(t)->to_ns = r->t_ns; /* when it came back is lost */
	t->offs++;
	*last_off(t) = (struct timeline_interval){
		.from_ns = r->t_ns,
		.runnable = r->runnable,
		.by = r->other,
		.call = t->call_ns ? t->in.call : NULL,
	};
}

struct timeline_call *timeline_row(struct timeline *t, const struct timeline_record *r)
{
	struct timeline_call *c = t->call;

	while (c < t->call + t->calls && (c->number != r->number || c->key != r->key))
		c++;
	if (c == t->call + TIMELINE_CALLS)
		return NULL;
	if (c == t->call + t->calls) {
		t->calls++;
		*c = (struct timeline_call){ .name = r->call,
					     .number = r->number,
					     .kind = r->kind,
					     .idle = r->idle,
					     .key = r->key };
	}
	return c;
}

/* A sleep is over. Those that end one by an interrupt may be left out: it was one if no
 * other was seen, and all were looked at from the begin of the sleep. */
static void end_sleep(struct timeline *t, int64_t now_ns)
{
	const bool in_call = t->call_ns && t->in.kind != TIMED_LOCK_WAIT;
	struct timeline_call *c = in_call ? timeline_row(t, &t->in) : NULL;
	const int64_t end_ns = t->woken_ns ? t->woken_ns : now_ns;
	const bool would_see = t->sees_wakers_ns && t->out_ns >= t->sees_wakers_ns;
	const char *by = t->woken_ns ? t->woken_by : would_see ? "an interrupt" : "";

	t->call_slept = true;
	if (c)
		add_time(&c->slept, t->out_ns, end_ns, by);
	if (!t->call_ns)
		t->slept_elsewhere_ns += end_ns - t->out_ns;
	if (!t->held)
		return;
	/* a lock that the agent held is no fault of the call: it is counted apart */
	if (c && !(t->woken_ns && t->woken_by_agent))
		add_time(&c->held, t->out_ns, end_ns, by);
	add_time(&t->timed[TIMED_KERNEL_WAIT], t->out_ns, end_ns, by);
}

static void come_back(struct timeline *t, const struct timeline_record *r)
{
	if (t->is_out) {
		last_off(t)->to_ns = r->t_ns;
		if (!t->runnable)
			end_sleep(t, r->t_ns);
		else if (t->priority < TIMELINE_LOWEST) /* real-time at that moment */
			add_time(&t->timed[last_off(t)->by.priority >= TIMELINE_LOWEST
						   ? TIMED_SET_ASIDE
						   : TIMED_PREEMPTED],
				 t->out_ns, r->t_ns, last_off(t)->by.name);
	}
	t->is_out = false;
}

/* --- waits for words ----------------------------------------------------------------- */

static struct timeline_word *find_word(struct timeline *t, uint64_t word)
{
	for (unsigned int i = 0; i < t->words; i++)
		if (t->word[i].futex.word == word)
			return &t->word[i];
	return NULL;
}

static struct timeline_word *word_of(struct timeline *t, const struct timeline_futex *f)
{
	struct timeline_word *w = find_word(t, f->word);

	if (w) {
		w->values_differ |= w->futex.value != f->value;
		return w;
	}
	if (t->words == TIMELINE_WORDS)
		return NULL;
	t->word[t->words] = (struct timeline_word){ .futex = *f };
	return &t->word[t->words++];
}

/* What a thread did between two times; known only if all of it is remembered. */
static struct timeline_doing doing_of(const struct timeline *t, int64_t from_ns,
				      int64_t to_ns)
{
	struct timeline_doing d = { .known = t->offs > 0 };
	const char *in = "";
	int64_t last_ns = 0;

	if (t->offs > TIMELINE_HISTORY &&
	    t->off[t->offs % TIMELINE_HISTORY].from_ns > from_ns)
		d.known = false;
	for (unsigned int i = 0; i < TIMELINE_HISTORY && i < t->offs; i++) {
		const struct timeline_interval *off = &t->off[i];
		const int64_t end_ns =
			off->to_ns && off->to_ns < to_ns ? off->to_ns : to_ns;
		const int64_t begin_ns =
			off->from_ns > from_ns ? off->from_ns : from_ns;

		if (end_ns <= begin_ns)
			continue;
		if (off->runnable)
			d.aside_ns += end_ns - begin_ns;
		else
			d.slept_ns += end_ns - begin_ns;
		if (!off->runnable && off->call && off->from_ns >= last_ns) {
			in = off->call;
			last_ns = off->from_ns;
		}
	}
	d.ran_ns = to_ns - from_ns - d.aside_ns - d.slept_ns;
	d.known &= d.ran_ns >= 0;
	memcpy(d.slept_in, in, strnlen(in, sizeof(d.slept_in) - 1));
	return d;
}

/* What a timer ends has a result, what a deadline ends has this error. */
static void count_settable(struct timeline_settable *s, uint8_t settable, int result)
{
	if (settable == SETTABLE_NOT || (settable == SETTABLE_TIMER && result <= 0))
		return;
	s->waits++;
	s->expired += settable == SETTABLE_TIMER || result == -ETIMEDOUT;
}

static void end_wait(struct timeline *t, int64_t now_ns, int result)
{
	struct timeline_word *w = word_of(t, &t->in.futex);

	if (!w) {
		t->other_words++;
		return;
	}
	if (!w->times.count || now_ns - t->call_ns > w->times.worst_ns) {
		w->has_waker = t->has_ender;
		w->waker = t->ender;
		w->meanwhile = t->ender_did;
	}
	add_time(&w->times, t->call_ns, now_ns, w->has_waker ? w->waker.name : "");
	count_settable(&w->settable, t->in.settable, result);
}

static void end_call(struct timeline *t, int64_t now_ns, int result)
{
	struct timeline_call *c;

	if (!t->call_ns)
		return;
	if (t->in.kind == TIMED_LOCK_WAIT) {
		end_wait(t, now_ns, result);
	} else {
		c = timeline_row(t, &t->in);
		if (c)
			count_settable(&c->settable, t->in.settable, result);
		if (!c)
			t->other_calls++;
		else if (t->in.cannot_block && !t->call_slept)
			c->harmless++;
		else if (t->in.gone && !t->call_slept)
			c->undecided++;
		else if (t->in.unsure && !t->call_slept)
			add_time(&c->unsure, t->call_ns, now_ns, t->in.call);
		else
			add_time(&c->times, t->call_ns, now_ns, t->in.call);
	}
	add_time(&t->timed[t->in.kind], t->call_ns, now_ns, t->in.call);
	t->call_ns = 0;
}

void timeline_settle(struct timeline_call *c)
{
	const struct timed *some = &c->unsure;

	if (c->could_not && !c->could) {
		c->harmless += some->count;
	} else if (some->count) {
		const int64_t count = c->times.count + some->count;
		const int64_t total_ns = c->times.total_ns + some->total_ns;

		if (!c->times.count || some->worst_ns > c->times.worst_ns)
			c->times = *some;
		c->times.count = count;
		c->times.total_ns = total_ns;
	}
	c->unsure = (struct timed){ 0 };
}

static void begin_call(struct timeline *t, const struct timeline_record *r)
{
	t->call_ns = r->t_ns;
	t->call_slept = false;
	t->has_ender = false;
	t->ender_did.known = false;
	t->in = *r;
	if (r->kind == TIMED_LOCK_WAIT && t->marked) {
		t->in.futex.word |= 1;
		t->marked = false;
	}
}

static void unlock(struct timeline *t, const struct timeline_record *r)
{
	struct timeline_word *w = find_word(t, r->futex.word);

	if (w)
		w->wakes++;
	t->call_ns = 0;
}

/* --- faults, and who wakes ----------------------------------------------------------- */

static void end_fault(struct timeline *t, enum timeline_kind kind, int64_t now_ns)
{
	if (t->fault_ns)
		add_time(&t->timed[kind], t->fault_ns, now_ns, "");
	t->fault_ns = 0;
}

/* 0: for none. */
static uint64_t word_waited_for(const struct timeline *t)
{
	return t->call_ns && t->in.kind == TIMED_LOCK_WAIT ? t->in.futex.word : 0;
}

static void count_waker(struct timeline *t, const struct timeline_record *r)
{
	const bool softirq = r->context == IN_SOFTIRQ;
	const uint64_t word = word_waited_for(t);
	struct timeline_waker *w = t->waker;

	/* the thread that a softirq interrupts is any */
	while (w < t->waker + t->wakers &&
	       (w->softirq != softirq || w->by.tid != r->other.tid || w->word != word))
		w++;
	if (w == t->waker + TIMELINE_WAKERS) {
		t->other_wakers++;
		return;
	}
	if (w == t->waker + t->wakers)
		t->waker[t->wakers++] = (struct timeline_waker){ .by = r->other,
								 .softirq = softirq,
								 .word = word };
	w->count++;
}

static void count_inversion(struct timeline *t, const struct timeline_party *owner,
			    const struct timeline_interval *aside, int64_t from_ns,
			    int64_t to_ns)
{
	const uint64_t word = t->in.futex.word;
	struct timeline_inversion *i = t->inversion;

	while (i < t->inversion + t->inversions &&
	       (i->owner.tid != owner->tid || i->by.tid != aside->by.tid ||
		i->word != word))
		i++;
	if (i == t->inversion + TIMELINE_WAKERS) {
		t->other_inversions++;
		return;
	}
	if (i == t->inversion + t->inversions)
		t->inversion[t->inversions++] = (struct timeline_inversion){
			.owner = *owner, .by = aside->by, .word = word
		};
	add_time(&i->waited, from_ns, to_ns, aside->by.name);
}

/* Who unlocks had the lock. While this thread waited, did one that is less urgent than
 * this one keep the owner from its CPU? */
static void look_for_inversion(struct timeline *t, const struct timeline_record *r,
			       const struct timeline *owner)
{
	for (unsigned int i = 0; i < TIMELINE_HISTORY && i < owner->offs; i++) {
		const struct timeline_interval *a = &owner->off[i];
		const int64_t from_ns =
			a->from_ns > t->call_ns ? a->from_ns : t->call_ns;
		const int64_t to_ns =
			a->to_ns && a->to_ns < r->t_ns ? a->to_ns : r->t_ns;

		if (a->runnable && to_ns > from_ns && a->by.priority > r->priority)
			count_inversion(t, &r->other, a, from_ns, to_ns);
	}
}

/* The first wake-up ends a sleep. Who waits for a lock that inherits spins while its
 * owner runs, and is woken all the same. */
static void note_end(struct timeline *t, const struct timeline_record *r,
		     const struct timeline *waker)
{
	static const char *const contexts[] = { NULL, "a softirq", "an interrupt" };
	const char *by = contexts[r->context] ? contexts[r->context] : r->other.name;
	const size_t size = strnlen(by, sizeof(t->woken_by) - 1);
	const bool sleeps = t->is_out && !t->runnable;

	if (sleeps && t->woken_ns)
		return;
	if (sleeps) {
		t->woken_ns = r->t_ns;
		memcpy(t->woken_by, by, size);
		t->woken_by[size] = '\0';
		t->woken_by_agent = r->by_agent;
	}
	if (!word_waited_for(t) || r->context != IN_THREAD)
		return;
	t->has_ender = true;
	t->ender = r->other;
	if (waker)
		t->ender_did = doing_of(waker, t->call_ns, r->t_ns);
}

static void wake(struct timeline *t, const struct timeline_record *r,
		 const struct timeline *waker)
{
	t->priority = r->priority;
	t->known = true;
	note_end(t, r, waker);
	/* A lock of the kernel, or a device: whoever wakes it, the program did not make
	 * this thread depend on that one. */
	if ((t->is_out && t->held) || r->priority >= TIMELINE_LOWEST ||
	    r->context == IN_INTERRUPT || r->by_agent)
		return;
	if (word_waited_for(t) && waker && r->context == IN_THREAD)
		look_for_inversion(t, r, waker);
	if (r->other.priority > r->priority)
		count_waker(t, r);
}

/* What began before may have ended in records that are lost: an end that follows is of
 * something else. */
static void forget(struct timeline *t, int64_t now_ns)
{
	if (t->is_out)
		last_off(t)->to_ns = now_ns;
	t->call_ns = t->fault_ns = t->woken_ns = 0;
	t->is_out = t->marked = t->has_ender = false;
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
		begin_call(t, r);
		break;
	case TIMELINE_MARK:
		t->marked = true;
		break;
	case TIMELINE_UNLOCK:
		unlock(t, r);
		break;
	case TIMELINE_RETURN:
		end_call(t, r->t_ns, r->fd - 1);
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
	case TIMELINE_LOST:
		forget(t, r->t_ns);
		break;
	}
}
