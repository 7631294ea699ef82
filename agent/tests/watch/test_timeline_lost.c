/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/check.h"
#include "watch/timeline.h"

#define ORDINARY 120
#define HIGH     20

static void at(struct timeline *t, int64_t t_ns, enum timeline_what what)
{
	struct timeline_record r = { .t_ns = t_ns,
				     .what = what,
				     .priority = HIGH,
				     .runnable = true,
				     .kind = TIMED_BLOCKING_CALL,
				     .call = "read",
				     .other = { .name = "other",
						.priority = ORDINARY } };

	timeline_add(t, &r, NULL);
}

static void what_lost_records_may_have_ended_is_not_timed(void)
{
	struct timeline t = { 0 };

	at(&t, 100, TIMELINE_CALL);
	at(&t, 110, TIMELINE_FAULT);
	at(&t, 120, TIMELINE_OUT);
	at(&t, 500, TIMELINE_LOST);
	at(&t, 900, TIMELINE_IN);
	at(&t, 910, TIMELINE_MINOR);
	at(&t, 920, TIMELINE_RETURN);

	for (unsigned int i = 0; i < TIMED_KINDS; i++)
		CHECK(t.timed[i].count == 0);
	CHECK(t.slept_elsewhere_ns == 0 && t.calls == 0);
}

static void what_comes_after_them_is(void)
{
	struct timeline t = { 0 };

	at(&t, 100, TIMELINE_CALL);
	at(&t, 500, TIMELINE_LOST);
	at(&t, 1000, TIMELINE_CALL);
	at(&t, 1005, TIMELINE_OUT);
	at(&t, 1008, TIMELINE_IN);
	at(&t, 1010, TIMELINE_RETURN);

	CHECK(t.timed[TIMED_BLOCKING_CALL].count == 1);
	CHECK(t.timed[TIMED_BLOCKING_CALL].worst_ns == 10);
	CHECK(t.timed[TIMED_SET_ASIDE].worst_ns == 3);
}

int main(void)
{
	what_lost_records_may_have_ended_is_not_timed();
	what_comes_after_them_is();
	return 0;
}
