/* SPDX-License-Identifier: MIT */
/* From events to runs, where the kernel left some out. */
#include "tests/check.h"
#include "tests/cyclepicks.h"

static void a_switch_that_was_not_recorded_cuts_one_run_only(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	arm_and_sleep(MS + 500, 2 * MS, false);
	expire_and_wake(2 * MS);
	take(PICK_IN, 2 * MS + 100, (struct pick){ 0 });
	arm_and_sleep(2 * MS + 490, 3 * MS, false);

	CHECK(runs == 2);
	CHECK(run[0].flags == CYCLE_CUT);
	CHECK(run[0].due_ns == MS);
	CHECK(run[0].in_ns == 0);
	CHECK(run[0].ran_ns == 0);
	CHECK(run[1].flags == 0);
	CHECK(run[1].due_ns == 2 * MS);
	CHECK(c.cut == 1);
}

/* A thread that runs is switched to: it slept, or was preempted, unseen. */
static void a_sleep_that_was_not_recorded_hides_no_wake_up(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	take(PICK_OUT, 200, (struct pick){ 0 });
	take(PICK_WAKING, MS, (struct pick){ .by = 6 });
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	/* no switch from it */
	take(PICK_WAKING, 2 * MS, (struct pick){ .by = 6 });
	take(PICK_IN, 2 * MS + 100, (struct pick){ 0 });
	take(PICK_OUT, 2 * MS + 200, (struct pick){ 0 });
	/* woken before it slept: it goes on */
	take(PICK_WAKING, 3 * MS, (struct pick){ .by = 6 });
	take(PICK_IN, 3 * MS + 100, (struct pick){ 0 });
	take(PICK_WAKING, 3 * MS + 200, (struct pick){ .by = 6 });
	take(PICK_OUT, 3 * MS + 300, (struct pick){ .runnable = true });
	take(PICK_IN, 3 * MS + 400, (struct pick){ 0 });
	take(PICK_OUT, 3 * MS + 500, (struct pick){ 0 });

	CHECK(runs == 2);
	CHECK(run[0].woken_ns == 2 * MS);
	CHECK(run[0].in_ns == 2 * MS + 100);
	CHECK(run[0].flags == CYCLE_GAP);
	CHECK(run[1].woken_ns == 3 * MS);
	CHECK(run[1].out_ns == 3 * MS + 500);
	CHECK(run[1].flags == 0);
	CHECK(c.cut == 1);
}

static void a_sleep_to_a_time_that_was_not_recorded_cuts_one_run(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	take(PICK_ARMED, MS + 300, (struct pick){ .timer = TIMER, .when_ns = 2 * MS });
	/* no switch from it */
	expire_and_wake(2 * MS);
	take(PICK_IN, 2 * MS + 100, (struct pick){ 0 });
	arm_and_sleep(2 * MS + 490, 3 * MS, false);

	CHECK(runs == 2);
	CHECK(run[0].out_ns == MS + 300);
	CHECK(run[0].flags == 0);
	CHECK(run[1].due_ns == 2 * MS);
	CHECK(run[1].out_ns == 2 * MS + 500);
	CHECK(run[1].flags == CYCLE_CUT);
	CHECK(c.cut == 1);
}

static void lost_events_are_told_with_the_next_run(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_LOST, MS + 50, (struct pick){ .when_ns = 5 * MS });
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	take(PICK_IN, 5 * MS + 100, (struct pick){ 0 });
	arm_and_sleep(5 * MS + 200, 6 * MS, false);
	expire_and_wake(6 * MS);
	take(PICK_IN, 6 * MS + 100, (struct pick){ 0 });
	take(PICK_OUT, 6 * MS + 200, (struct pick){ 0 });

	CHECK(runs == 1);
	CHECK(run[0].due_ns == 6 * MS);
	CHECK(run[0].flags == CYCLE_GAP);
	CHECK(c.cut == 1);
}

int main(void)
{
	a_switch_that_was_not_recorded_cuts_one_run_only();
	a_sleep_that_was_not_recorded_hides_no_wake_up();
	a_sleep_to_a_time_that_was_not_recorded_cuts_one_run();
	lost_events_are_told_with_the_next_run();
	return 0;
}
