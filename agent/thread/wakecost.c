/* SPDX-License-Identifier: MIT */
#include "thread/wakecost.h"

#include <stdlib.h>
#include <sys/prctl.h>

#include "thread/clock.h"
#include "thread/policy.h"

#define SLEEP_NS INT64_C(1000000)

void wakecost_begin(void)
{
	policy_set(&(struct policy){ .kind = POLICY_FIFO, .priority = 1 });
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); /* where it stays ordinary */
}

void wakecost_end(void)
{
	prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0);
	policy_set(&(struct policy){ .kind = POLICY_OTHER });
}

static int by_size(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t wakecost_ns(void)
{
	int64_t late_ns[WAKECOST_SLEEPS];

	for (unsigned int i = 0; i < WAKECOST_SLEEPS; i++) {
		const int64_t due_ns = clock_now_ns() + SLEEP_NS;
		const struct timespec due = ns_timespec(due_ns);

		clock_sleep_until(&due);
		late_ns[i] = clock_now_ns() - due_ns;
	}
	qsort(late_ns, WAKECOST_SLEEPS, sizeof(late_ns[0]), by_size);
	return late_ns[WAKECOST_SLEEPS / 2];
}
