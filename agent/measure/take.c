/* SPDX-License-Identifier: MIT */
#include "measure/sampler.h"

#include "marker.h"

static void publish_record(struct progress *p, const struct wakeup *w)
{
	uint32_t version = relaxed(p->record_version);

	relax(p->record_version, version + 1);
	/* release: who acquires a new field in sampler_read_record() then sees the odd
	 * version; no fences, which the thread sanitizer does not know */
	atomic_store_explicit(&p->record_seq, w->seq, memory_order_release);
	atomic_store_explicit(&p->record_expiry_ns, w->expiry_ns, memory_order_release);
	atomic_store_explicit(&p->record_wake_ns, w->wake_ns, memory_order_release);
	/* release: the fields are out before the even version */
	atomic_store_explicit(&p->record_version, version + 2, memory_order_release);
}

int64_t take_missed(struct sampler *s, int64_t next_ns, int64_t now_ns)
{
	uint64_t missed = 0;

	for (; next_ns <= now_ns && next_ns <= s->end_ns; next_ns += s->interval_ns) {
		wide_add(&s->missed_periods_sum_ns, (uint64_t)(now_ns - next_ns), 0);
		missed++;
	}
	relax(s->progress.missed_periods, relaxed(s->progress.missed_periods) + missed);
	return next_ns;
}

/* Among the worst: reached by a handful of wake-ups in a million. */
static void take_bad(struct sampler *s, const struct wakeup *w, bool new_maximum)
{
	marker_candidate((uint64_t)(w->wake_ns - w->expiry_ns), w->seq);
	worst_offer(&s->worst, *w);
	if (s->candidates)
		candidates_push(s->candidates, *w);
	if (new_maximum)
		publish_record(&s->progress, w);
}

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Sets from where on the next sample is rare. */
static void set_rare(struct sampler *s, int64_t latency_ns)
{
	struct progress *p = &s->progress;
	int64_t seen_ns = relaxed(p->window_max_ns);
	int64_t max_ns = latency_ns > seen_ns ? latency_ns : seen_ns;
	uint64_t rare_ns = lower((uint64_t)max_ns, HIST_USUAL_MAX) + 1;

	rare_ns = lower(rare_ns, (uint64_t)s->worst.bar_ns + 1);
	relax(p->rare_ns, lower(rare_ns, (uint64_t)s->interval_ns));
	/* release: pairs with the supervisor's acquire, whose 0 then comes after it */
	if (atomic_compare_exchange_strong_explicit(&p->window_max_ns, &seen_ns, max_ns,
						    memory_order_release,
						    memory_order_relaxed))
		return;
	/* the supervisor has taken it meanwhile: this sample is of the next second */
	relax(p->rare_ns, 0);
	if (latency_ns > 0)
		relax(p->window_max_ns, latency_ns);
}

void take_rare(struct sampler *s, const struct wakeup *w)
{
	const int64_t latency_ns = w->wake_ns - w->expiry_ns;

	if (latency_ns > s->worst.bar_ns)
		take_bad(s, w, latency_ns > s->hist.max_ns);
	take_figures(s, latency_ns);
}

void take_figures(struct sampler *s, int64_t latency_ns)
{
	if (latency_ns >= s->interval_ns)
		s->overruns++;
	hist_add(&s->hist, latency_ns);
	set_rare(s, latency_ns);
	relax(s->progress.samples, relaxed(s->progress.samples) + 1);
}

int64_t take_window_max(struct progress *p)
{
	/* acquire: pairs with the sampler's release; a maximum that is stored while we
	 * exchange stays for the next second: none is lost */
	int64_t max_ns =
		atomic_exchange_explicit(&p->window_max_ns, 0, memory_order_acquire);

	relax(p->rare_ns, 0);
	return max_ns;
}
