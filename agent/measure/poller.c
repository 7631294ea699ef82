/* SPDX-License-Identifier: MIT */
#include "measure/poller.h"

/* Begins and ends with readings of the clock. */
struct hole {
	int64_t from_ns, to_ns;
};

static int64_t length_ns(const struct hole *h)
{
	return h->to_ns - h->from_ns;
}

/* The period that ends now, and those that the hole swallowed whole: of them nothing was
 * seen. Returns the end of the next one. */
static int64_t __attribute__((noinline)) end_period(struct sampler *s,
						    const struct hole *longest,
						    int64_t end_ns, int64_t now_ns)
{
	const int64_t latency_ns = length_ns(longest);
	int64_t next_ns = end_ns + s->interval_ns;
	uint64_t missed = 0;

	if (latency_ns > s->worst.bar_ns) {
		const struct wakeup w = {
			.seq = (uint64_t)((end_ns - s->start_ns) / s->interval_ns),
			.expiry_ns = longest->from_ns,
			.wake_ns = longest->to_ns,
		};

		take_bad(s, &w, latency_ns > s->hist.max_ns);
	}
	take(s, latency_ns);
	if (latency_ns >= s->interval_ns)
		s->overruns++;
	for (; next_ns <= now_ns && next_ns <= s->end_ns; next_ns += s->interval_ns) {
		wide_add(&s->missed_periods_sum_ns, (uint64_t)(now_ns - next_ns), 0);
		missed++;
	}
	relax(s->progress.missed_periods, relaxed(s->progress.missed_periods) + missed);
	return next_ns;
}

void poller_until_end(struct sampler *s)
{
	int64_t end_ns = s->start_ns + s->interval_ns;
	int64_t last_ns = clock_now_ns();
	struct hole longest = { 0, 0 };

	while (last_ns < s->start_ns && !relaxed(*s->stop))
		last_ns = clock_now_ns();
	while (end_ns <= s->end_ns) {
		const struct hole h = { last_ns, clock_now_ns() };

		if (__builtin_expect(length_ns(&h) > length_ns(&longest), 0))
			longest = h;
		last_ns = h.to_ns;
		if (__builtin_expect(last_ns < end_ns, 1))
			continue;
		end_ns = end_period(s, &longest, end_ns, last_ns);
		longest = (struct hole){ 0, 0 };
		if (__builtin_expect(relaxed(*s->stop), 0))
			break;
	}
	s->end_ns = end_ns - s->interval_ns;
}
