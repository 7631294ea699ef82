/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "wakeuptimes.h"

/* The later of two times; neither is later than the end. */
static int64_t at_least(int64_t ns, int64_t before_ns, int64_t end_ns)
{
	return ns < before_ns ? before_ns : ns > end_ns ? end_ns : ns;
}

void wakeuptimes_parts(const struct wakeup_times *times, int64_t took_ns[PARTS])
{
	const int64_t at_ns[PARTS] = {
		[PART_BEFORE] = times->by_timer ? times->entered_ns : times->woken_ns,
		[PART_INTERRUPT] =
			times->quit_ns != NEVER ? times->quit_ns : times->woken_ns,
		[PART_PREEMPTION] = times->scheduled_ns,
		[PART_SCHEDULER] = times->switched_ns,
		[PART_RETURN] = times->read_ns,
	};
	int64_t before_ns = times->read_ns - times->latency_ns;

	for (unsigned int i = 0; i < PARTS; i++) {
		int64_t ns = at_least(at_ns[i], before_ns, times->read_ns);

		took_ns[i] = ns - before_ns;
		before_ns = ns;
	}
}
