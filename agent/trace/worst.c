/* SPDX-License-Identifier: MIT */
#include "trace/worst.h"

static int64_t latency_ns(const struct wakeup *w)
{
	return w->wake_ns - w->expiry_ns;
}

void worst_init(struct worst *w, unsigned int limit)
{
	*w = (struct worst){
		.limit = limit < WORST_MAX ? limit : WORST_MAX,
		.bar_ns = limit ? -1 : INT64_MAX,
	};
}

void worst_offer(struct worst *w, struct wakeup wakeup)
{
	unsigned int place;

	if (latency_ns(&wakeup) <= w->bar_ns)
		return;

	place = w->count < w->limit ? w->count++ : w->limit - 1;
	for (; place > 0; place--) {
		if (latency_ns(&w->entry[place - 1]) >= latency_ns(&wakeup))
			break;
		w->entry[place] = w->entry[place - 1];
	}
	w->entry[place] = wakeup;

	if (w->count == w->limit)
		w->bar_ns = latency_ns(&w->entry[w->count - 1]);
}
