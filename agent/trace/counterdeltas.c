/* SPDX-License-Identifier: MIT */
#include "trace/counterdeltas.h"

#include <errno.h>
#include <stdlib.h>

#include "thread/clock.h"
#include "trace/wakeupline.h"

#define ROUND_NS (100 * INT64_C(1000000))

static int64_t latency_ns(const struct wakeup *w)
{
	return w->wake_ns - w->expiry_ns;
}

static void let_go(struct counter_look *l)
{
	if (--l->refs > 0)
		return;
	snapshot_free(&l->interrupts);
	snapshot_free(&l->softirqs);
	snapshot_free(&l->stat);
	snapshot_free(&l->schedstat);
	free(l);
}

static void look(struct counter_look *l)
{
	l->refs = 1;
	l->begin_ns = clock_now_ns();
	/* what cannot be read is empty, and its difference too */
	snapshot_take("/proc/interrupts", &l->interrupts);
	snapshot_take("/proc/softirqs", &l->softirqs);
	snapshot_take("/proc/stat", &l->stat);
	snapshot_take("/proc/schedstat", &l->schedstat);
	l->end_ns = clock_now_ns();
}

static void add(struct counterdeltas *a, struct counter_look *l)
{
	if (a->looks == COUNTERDELTAS_LOOKS) {
		let_go(a->look[0]);
		for (unsigned int i = 1; i < a->looks; i++)
			a->look[i - 1] = a->look[i];
		a->looks--;
	}
	a->look[a->looks++] = l;
}

/* Its latest look is after the wake-up, the one before its expiry is searched. */
static void keep(struct counterdeltas *a, struct kept_deltas k)
{
	unsigned int from = a->looks - 1, place;

	while (from > 0 && a->look[from]->end_ns > k.wakeup.expiry_ns)
		from--;
	k.truncated = a->look[from]->end_ns > k.wakeup.expiry_ns;
	k.from = a->look[from];
	k.to = a->look[a->looks - 1];

	if (a->count < a->limit) {
		place = a->count++;
	} else if (a->limit &&
		   latency_ns(&k.wakeup) > latency_ns(&a->kept[a->limit - 1].wakeup)) {
		place = a->limit - 1;
		let_go(a->kept[place].from);
		let_go(a->kept[place].to);
	} else {
		return;
	}
	k.from->refs++;
	k.to->refs++;
	for (; place > 0 &&
	       latency_ns(&k.wakeup) > latency_ns(&a->kept[place - 1].wakeup);
	     place--)
		a->kept[place] = a->kept[place - 1];
	a->kept[place] = k;
}

/* Returns how many wake-ups it took: WORST_MAX if more may wait. */
static unsigned int take_round(struct counterdeltas *a)
{
	struct kept_deltas fresh[WORST_MAX];
	unsigned int count = 0;
	struct counter_look *l = calloc(1, sizeof(*l));

	if (!l)
		return 0; /* the rings keep theirs, and count what they lose */

	/* first those that are over, then the look that is after them */
	for (unsigned int i = 0; i < a->samplers; i++) {
		struct kept_deltas k = { .cpu = a->candidates[i].cpu };

		while (count < WORST_MAX &&
		       candidates_pop(&a->candidates[i], &k.wakeup))
			if (latency_ns(&k.wakeup) >= 0)
				fresh[count++] = k;
	}
	look(l);
	add(a, l);
	for (unsigned int i = 0; i < count; i++)
		keep(a, fresh[i]);
	return count;
}

void counterdeltas_round(void *deltas)
{
	take_round(deltas);
}

int counterdeltas_start(struct counterdeltas *a, struct candidates *candidates,
			unsigned int samplers, unsigned int worst)
{
	*a = (struct counterdeltas){
		.candidates = candidates,
		.samplers = samplers,
		.limit = worst < WORST_MAX ? worst : WORST_MAX,
		.rounds = { .name = "rtscope/around",
			    .period_ns = ROUND_NS,
			    .round = counterdeltas_round,
			    .context = a },
	};
	counterdeltas_round(a); /* so that there is one before the first wake-up */
	return rounds_start(&a->rounds);
}

void counterdeltas_stop(struct counterdeltas *a)
{
	if (!a->rounds.running)
		return;
	rounds_stop(&a->rounds);
	while (take_round(a) == WORST_MAX)
		;
}

static void emit_kept(const struct kept_deltas *k, struct emit *e)
{
	emit_open(e, NULL, '{');
	wakeupline_emit(e, k->cpu, &k->wakeup);
	emit_int(e, "from_ns", k->from->begin_ns);
	emit_int(e, "to_ns", k->to->end_ns);
	emit_bool(e, "truncated", k->truncated);
	counters_emit_delta(e, "interrupts", &k->from->interrupts, &k->to->interrupts);
	counters_emit_delta(e, "softirqs", &k->from->softirqs, &k->to->softirqs);
	counters_emit_cpu_times(e, &k->from->stat, &k->to->stat);
	emit_int(e, "switches", counters_switches(&k->from->stat, &k->to->stat));
	counters_emit_runs(e, &k->from->schedstat, &k->to->schedstat);
	emit_close(e, '}');
}

void counterdeltas_emit(const struct counterdeltas *a, struct emit *e)
{
	emit_open(e, "counter_deltas", '[');
	for (unsigned int i = 0; i < a->count; i++)
		emit_kept(&a->kept[i], e);
	emit_close(e, ']');
}

void counterdeltas_free(struct counterdeltas *a)
{
	for (unsigned int i = 0; i < a->count; i++) {
		let_go(a->kept[i].from);
		let_go(a->kept[i].to);
	}
	for (unsigned int i = 0; i < a->looks; i++)
		let_go(a->look[i]);
	a->count = a->looks = 0;
}
