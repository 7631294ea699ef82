/* SPDX-License-Identifier: MIT */
#include "measure/poller.h"

/* Begins and ends with readings of the clock. */
struct gap {
	int64_t from_ns, to_ns;
};

static int64_t length_ns(const struct gap *g)
{
	return g->to_ns - g->from_ns;
}

/* The period that ends now, and those that the gap swallowed whole: of them nothing was
 * seen. Returns the end of the next one. */
static int64_t __attribute__((noinline))
end_period(struct sampler *s, const struct gap *longest, int64_t end_ns, int64_t now_ns)
{
	const struct wakeup w = {
		.seq = (uint64_t)((end_ns - s->start_ns) / s->interval_ns),
		.expiry_ns = longest->from_ns,
		.wake_ns = longest->to_ns,
	};

	take_rare(s, &w);
	return take_missed(s, end_ns + s->interval_ns, now_ns);
}

void poller_until_end(struct sampler *s)
{
	int64_t end_ns = s->start_ns + s->interval_ns;
	int64_t last_ns = clock_now_ns();
	struct gap longest = { 0, 0 };

	while (last_ns < s->start_ns && !relaxed(*s->stop))
		last_ns = clock_now_ns();
	while (end_ns <= s->end_ns) {
		const struct gap g = { last_ns, clock_now_ns() };

		if (__builtin_expect(length_ns(&g) > length_ns(&longest), 0))
			longest = g;
		last_ns = g.to_ns;
		if (__builtin_expect(last_ns < end_ns, 1))
			continue;
		end_ns = end_period(s, &longest, end_ns, last_ns);
		longest = (struct gap){ 0, 0 };
		if (__builtin_expect(relaxed(*s->stop), 0))
			break;
	}
	s->end_ns = end_ns - s->interval_ns;
}
