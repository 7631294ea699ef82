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

void take_bad(struct sampler *s, const struct wakeup *w, bool new_maximum)
{
	marker_candidate((uint64_t)(w->wake_ns - w->expiry_ns), w->seq);
	worst_offer(&s->worst, *w);
	if (s->candidates)
		candidates_push(s->candidates, *w);
	if (new_maximum)
		publish_record(&s->progress, w);
}
