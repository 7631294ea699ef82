/* SPDX-License-Identifier: MIT */
/* Events of one thread with one timer, and the runs that they make. */
#ifndef CYCLEPICKS_H
#define CYCLEPICKS_H

#include "cycles/cycles.h"
#include "tests/check.h"

#define TID   77
#define TIMER 0xffffc90000001000
#define MS    1000000

static struct cycles c;
static struct cyclerun run[8];
static unsigned int runs;

static void keep_run(void *context, const struct cyclerun *done)
{
	(void)context;
	CHECK(runs < 8);
	run[runs++] = *done;
}

static void begin_cycles(void)
{
	runs = 0;
	c = (struct cycles){ .done = keep_run };
	CHECK(cycles_add(&c, TID));
}

static void take(enum pick_kind kind, int64_t at_ns, struct pick rest)
{
	rest.kind = kind;
	rest.at_ns = at_ns;
	if (kind != PICK_EXPIRING && kind != PICK_EXPIRED && kind != PICK_LOST)
		rest.tid = TID;
	cycles_take(&c, &rest);
}

static void arm_and_sleep(int64_t at_ns, int64_t due_ns, bool relative)
{
	const struct pick timer = { .timer = TIMER,
				    .when_ns = due_ns,
				    .relative = relative };

	take(PICK_ARMED, at_ns, timer);
	take(PICK_OUT, at_ns + 10, (struct pick){ 0 });
}

static void expire_and_wake(int64_t at_ns)
{
	take(PICK_EXPIRING, at_ns, (struct pick){ .timer = TIMER, .when_ns = at_ns });
	take(PICK_WAKING, at_ns + 20, (struct pick){ 0 });
	take(PICK_EXPIRED, at_ns + 30, (struct pick){ 0 });
}

#endif
