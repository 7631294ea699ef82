/* SPDX-License-Identifier: MIT */
/* From events to runs: as a page of the kernel has them, and with some missing. */
#include <string.h>

#include "tests/check.h"
#include "tests/cyclepicks.h"
#include "tests/tracepages.h"

static void a_run_goes_from_the_time_of_the_timer_to_the_sleep(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS + 50);
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	take(PICK_OUT, MS + 300, (struct pick){ .runnable = true });
	take(PICK_IN, MS + 1000, (struct pick){ 0 });
	arm_and_sleep(MS + 1490, 2 * MS, false);

	CHECK(runs == 1);
	CHECK(run[0].due_ns == MS);
	CHECK(run[0].armed_ns == 200);
	CHECK(run[0].woken_ns == MS + 70);
	CHECK(run[0].in_ns == MS + 100);
	CHECK(run[0].out_ns == MS + 1500);
	CHECK(run[0].ran_ns == 200 + 500);
	CHECK(run[0].preempted == 1);
	CHECK(run[0].flags == 0);
}

static void a_timer_of_another_clock_is_due_when_its_callback_says(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	take(PICK_ARMED, 200,
	     (struct pick){ .timer = TIMER, .when_ns = 1000 * INT64_C(1000000000) });
	take(PICK_OUT, 210, (struct pick){ 0 });
	take(PICK_EXPIRING, MS,
	     (struct pick){ .timer = TIMER,
			    .when_ns = 1000 * INT64_C(1000000000) + 700 });
	take(PICK_WAKING, MS + 20, (struct pick){ 0 });
	take(PICK_IN, MS + 40, (struct pick){ 0 });
	take(PICK_OUT, MS + 50, (struct pick){ 0 });

	CHECK(runs == 1);
	CHECK(run[0].due_ns == MS - 700);
}

static void a_wake_up_by_another_thread_has_no_timer(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, true);
	/* the callback is that of another CPU, and of another thread */
	take(PICK_EXPIRING, 400,
	     (struct pick){ .timer = TIMER, .when_ns = 400, .by = 5 });
	take(PICK_WAKING, 500, (struct pick){ .by = 6 });
	take(PICK_IN, 600, (struct pick){ 0 });
	take(PICK_OUT, 700, (struct pick){ 0 });

	CHECK(runs == 1);
	CHECK(run[0].due_ns == 0);
	CHECK(run[0].armed_ns == 0);
	CHECK(run[0].woken_ns == 500);
}

static void a_time_that_has_passed_begins_a_run_without_a_sleep(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	take(PICK_ARMED, 3 * MS, (struct pick){ .timer = TIMER, .when_ns = 2 * MS });
	expire_and_wake(3 * MS + 10);
	take(PICK_OUT, 4 * MS, (struct pick){ 0 });

	CHECK(runs == 2);
	CHECK(run[0].out_ns == 3 * MS);
	CHECK(run[1].due_ns == 2 * MS);
	CHECK(run[1].in_ns == 3 * MS + 30);
	CHECK(run[1].out_ns == 4 * MS);
	CHECK(run[1].flags == CYCLE_NO_SLEEP);
}

/* The kernel begins the stack of a thread at random: each sleep has another place. */
static void a_timer_of_another_thread_never_takes_the_place_of_one_that_waits(void)
{
	begin_cycles();
	CHECK(cycles_add(&c, TID + 1));
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	for (uint64_t i = 1; i < 64; i++) {
		const struct pick other = { .at_ns = 300 + (int64_t)i,
					    .kind = PICK_ARMED,
					    .tid = TID + 1,
					    .timer = TIMER + (i << 24),
					    .when_ns = 500 * MS };

		cycles_take(&c, &other);
		cycles_take(&c, &(struct pick){ .at_ns = other.at_ns,
						.kind = PICK_EXPIRING,
						.timer = other.timer,
						.when_ns = other.at_ns });
		cycles_take(&c, &(struct pick){ .at_ns = other.at_ns,
						.kind = PICK_EXPIRED });
	}
	expire_and_wake(MS);
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	take(PICK_OUT, MS + 200, (struct pick){ 0 });

	CHECK(runs == 1);
	CHECK(run[0].due_ns == MS);
	CHECK(run[0].flags == 0);
}

static void where_a_waiting_timer_had_no_place_the_next_run_says_so(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	arm_and_sleep(MS + 200, 2 * MS, false);
	for (uint64_t i = 1; i <= CYCLES_TIMER_WAYS; i++)
		cycles_take(&c, &(struct pick){ .at_ns = MS + 300 + (int64_t)i,
						.kind = PICK_ARMED,
						.tid = TID,
						.function = 1,
						.timer = TIMER + (i << 24),
						.when_ns = 500 * MS });
	expire_and_wake(2 * MS);
	take(PICK_IN, 2 * MS + 100, (struct pick){ 0 });
	take(PICK_OUT, 2 * MS + 200, (struct pick){ 0 });

	CHECK(runs == 2);
	CHECK(run[1].due_ns == 0);
	CHECK(run[1].flags & CYCLE_GAP);
}

static void expire_and_wake_nobody(int64_t at_ns)
{
	take(PICK_EXPIRING, at_ns, (struct pick){ .timer = TIMER, .when_ns = at_ns });
	take(PICK_EXPIRED, at_ns + 30, (struct pick){ 0 });
}

static void arm(int64_t at_ns, int64_t due_ns)
{
	take(PICK_ARMED, at_ns, (struct pick){ .timer = TIMER, .when_ns = due_ns });
}

static void a_timer_that_is_taken_late_begins_a_run_at_its_time(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	arm(MS + 110, 2 * MS); /* the read that takes it sets it again */
	expire_and_wake_nobody(2 * MS);
	arm(2 * MS + 500, 3 * MS);
	take(PICK_OUT, 2 * MS + 900, (struct pick){ 0 });

	CHECK(runs == 2);
	CHECK(run[0].out_ns == 2 * MS + 500);
	CHECK(run[1].due_ns == 2 * MS);
	CHECK(run[1].flags == CYCLE_NO_SLEEP);
}

static void an_expiry_that_woke_nobody_is_of_no_later_sleep_in_its_place(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	arm_and_sleep(MS + 200, 2 * MS, false);
	take(PICK_WAKING, 2 * MS - 5, (struct pick){ .by = 5 }); /* just before */
	expire_and_wake_nobody(2 * MS);
	take(PICK_IN, 2 * MS + 100, (struct pick){ 0 });
	take(PICK_OUT, 2 * MS + 200, (struct pick){ 0 });
	take(PICK_WAKING, 900 * MS, (struct pick){ .by = 5 });
	take(PICK_IN, 900 * MS + 10, (struct pick){ 0 });
	arm_and_sleep(900 * MS + 20, 900 * MS + 777, false);

	CHECK(runs == 3);
	CHECK(run[2].due_ns == 0);
	CHECK(run[2].woken_ns == 900 * MS);
	CHECK(run[2].out_ns == 900 * MS + 30);
}

/* The agent has slept to a time itself: so it knows the callback of such a sleep. */
static void learn_sleeper(uint64_t function)
{
	c.own_tid = 9;
	c.own_ns = 77;
	cycles_take(&c, &(struct pick){ .at_ns = 50,
					.kind = PICK_ARMED,
					.by = 9,
					.timer = TIMER + 0x770,
					.function = function,
					.when_ns = 77 });
	CHECK(c.sleeper_known);
}

static void a_sleep_that_ends_while_its_thread_waits_for_a_cpu_is_over(void)
{
	begin_cycles();
	learn_sleeper(0);
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	arm_and_sleep(MS + 200, 2 * MS, false);
	take(PICK_WAKING, 2 * MS - 5, (struct pick){ .by = 5 });
	expire_and_wake_nobody(2 * MS);
	take(PICK_IN, 2 * MS + 100, (struct pick){ 0 });
	take(PICK_OUT, 2 * MS + 200, (struct pick){ 0 });

	CHECK(runs == 2);
	CHECK(run[1].due_ns == 2 * MS);
	CHECK(run[1].armed_ns == MS + 200);
	CHECK(run[1].flags == 0);
}

/* As a grid of absolute times on one stack has them. */
static void an_expiry_of_a_sleep_is_not_taken_by_the_next_one_in_its_place(void)
{
	begin_cycles();
	learn_sleeper(0);
	take(PICK_IN, 100, (struct pick){ 0 });
	for (int64_t due = MS; due < 4 * MS; due += MS) {
		arm_and_sleep(due - 500, due, false);
		expire_and_wake(due);
		take(PICK_IN, due + 100, (struct pick){ 0 });
	}
	arm_and_sleep(3 * MS + 200, 4 * MS, false);
	take(PICK_WAKING, 4 * MS - 100, (struct pick){ .by = 5 });
	take(PICK_IN, 4 * MS - 5, (struct pick){ 0 });
	expire_and_wake_nobody(4 * MS);
	arm_and_sleep(40 * MS + 20, 41 * MS, false);

	CHECK(runs == 4);
	CHECK(run[3].due_ns == 4 * MS);
	CHECK(run[3].in_ns == 4 * MS + 30);
	CHECK(run[3].out_ns == 40 * MS + 30);
}

static void a_timer_that_is_no_sleep_is_still_taken_late(void)
{
	begin_cycles();
	learn_sleeper(1);
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	arm(MS + 110, 2 * MS);
	expire_and_wake_nobody(2 * MS);
	arm(2 * MS + 500, 3 * MS);
	take(PICK_OUT, 2 * MS + 900, (struct pick){ 0 });

	CHECK(runs == 2);
	CHECK(run[1].due_ns == 2 * MS);
}

/* A handler of a signal, or a condition before its timeout: the sleep goes on. */
static void a_run_within_a_sleep_that_goes_on_is_marked(void)
{
	for (int rest = 0; rest < 2; rest++) {
		begin_cycles();
		take(PICK_IN, 100, (struct pick){ 0 });
		arm_and_sleep(200, MS, rest);
		expire_and_wake(MS);
		take(PICK_IN, MS + 100, (struct pick){ 0 });
		arm_and_sleep(MS + 200, 4 * MS, rest);
		take(PICK_WAKING, 2 * MS, (struct pick){ .by = 5 });
		take(PICK_IN, 2 * MS + 10, (struct pick){ 0 });
		arm_and_sleep(2 * MS + 90, 4 * MS + (rest ? 70 : 0), rest);
		expire_and_wake(4 * MS + 70);
		take(PICK_IN, 4 * MS + 170, (struct pick){ 0 });
		take(PICK_OUT, 4 * MS + 200, (struct pick){ 0 });

		CHECK(runs == 3);
		CHECK(run[0].flags == (rest ? CYCLE_RELATIVE : 0));
		CHECK(run[1].flags == CYCLE_BETWEEN);
		CHECK(run[2].flags == (rest ? CYCLE_RELATIVE : 0));
	}
}

static void a_wait_for_another_time_is_no_sleep_that_goes_on(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	arm_and_sleep(MS + 200, MS + MS / 5, true);
	take(PICK_WAKING, MS + 400, (struct pick){ .by = 5 });
	take(PICK_IN, MS + 500, (struct pick){ 0 });
	arm_and_sleep(MS + 600, 2 * MS, false);

	CHECK(runs == 2);
	CHECK(run[1].flags == 0);
}

/* Another thread wakes it 100 us before its time; it works until 100 us after it. */
static void a_time_that_comes_while_another_is_served_is_noted(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_IN, MS + 50, (struct pick){ 0 });
	arm_and_sleep(MS + 90, 2 * MS, false);
	take(PICK_WAKING, 2 * MS - 100000, (struct pick){ .by = 5 });
	take(PICK_IN, 2 * MS - 90000, (struct pick){ 0 });
	arm_and_sleep(2 * MS + 99990, 3 * MS, false);
	expire_and_wake(3 * MS);
	take(PICK_IN, 3 * MS + 50, (struct pick){ 0 });
	take(PICK_OUT, 3 * MS + 100, (struct pick){ 0 });

	CHECK(runs == 3);
	CHECK(run[1].woken_ns == 2 * MS - 100000);
	CHECK(run[1].due_ns == 2 * MS);
	CHECK(run[1].armed_ns == MS + 90);
	CHECK(run[1].out_ns == 2 * MS + 100000);
	CHECK(run[1].ran_ns == 190000);
	CHECK(run[1].flags == CYCLE_WITHIN);
	CHECK(run[2].due_ns == 3 * MS);
	CHECK(run[2].flags == 0);
}

static void a_time_that_comes_before_it_has_the_cpu_begins_its_run(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_IN, MS + 50, (struct pick){ 0 });
	arm_and_sleep(MS + 90, 2 * MS, false);
	take(PICK_WAKING, 2 * MS - 50, (struct pick){ .by = 5 });
	take(PICK_IN, 2 * MS + 150, (struct pick){ 0 });
	take(PICK_OUT, 2 * MS + 400, (struct pick){ 0 });

	CHECK(runs == 2);
	CHECK(run[1].due_ns == 2 * MS);
	CHECK(run[1].armed_ns == MS + 90);
	CHECK(run[1].in_ns == 2 * MS + 150);
	CHECK(run[1].ran_ns == 250);
	CHECK(run[1].flags == CYCLE_WITHIN);
}

/* It ends before its time comes, or waited for no time but for an interval. */
static void a_run_within_a_sleep_is_one_where_its_time_did_not_come(void)
{
	for (int relative = 0; relative < 2; relative++) {
		begin_cycles();
		take(PICK_IN, 100, (struct pick){ 0 });
		arm_and_sleep(200, MS, false);
		expire_and_wake(MS);
		take(PICK_IN, MS + 50, (struct pick){ 0 });
		arm_and_sleep(MS + 90, 2 * MS, relative);
		take(PICK_WAKING, 2 * MS - 100000, (struct pick){ .by = 5 });
		take(PICK_IN, 2 * MS - 90000, (struct pick){ 0 });
		arm_and_sleep(2 * MS - (relative ? -50000 : 50000), 3 * MS, false);

		CHECK(runs == 2);
		CHECK(run[1].due_ns == 0);
		CHECK(run[1].flags == 0);
	}
}

static const char switch_format[] =
	"name: sched_switch\nID: 372\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
	"\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
	"\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
	"\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n";

static struct pick picked[4];
static unsigned int picks;

static void keep_pick(void *context, const struct pick *pick)
{
	(void)context;
	CHECK(picks < 4);
	picked[picks++] = *pick;
}

static void a_run_that_ends_behind_the_recording_is_counted_as_cut(void)
{
	begin_cycles();
	c.until_ns = 3 * MS;
	take(PICK_IN, 100, (struct pick){ 0 });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	take(PICK_IN, MS + 100, (struct pick){ 0 });
	arm_and_sleep(MS + 500, 2 * MS, false);
	expire_and_wake(2 * MS);
	take(PICK_IN, 2 * MS + 100, (struct pick){ 0 });
	arm_and_sleep(3 * MS, 4 * MS, false);
	expire_and_wake(4 * MS);
	take(PICK_IN, 4 * MS + 100, (struct pick){ 0 });
	arm_and_sleep(4 * MS + 500, 5 * MS, false);
	cycles_end(&c);

	CHECK(runs == 1);
	CHECK(c.cut == 1);
}

static void switches_are_read_from_a_page_by_the_kernels_format(void)
{
	static struct cyclepick p;
	const struct tracepage_layout layout = layout_of_tests();
	unsigned char page[PAGE_BYTES], event[64] = { 0 };
	const uint16_t id = 372;
	const int32_t prev = TID, next = 5;
	const uint64_t state = 1;

	cyclepick_format(&p, "sched_switch", switch_format);
	CHECK(!cyclepick_works(&p)); /* without sched_waking */
	CHECK(cyclepick_watch(&p, TID));
	CHECK(!cyclepick_watch(&p, TID));
	memcpy(event, &id, sizeof(id));
	memcpy(event + 24, &prev, sizeof(prev));
	memcpy(event + 32, &state, sizeof(state));
	memcpy(event + 56, &next, sizeof(next));
	begin_page(page, 1000);
	put_event(page, 16, 7, 0, 4 + sizeof(event));
	memcpy(page + 20, event, sizeof(event));
	picks = 0;
	cyclepick_page(&p, &layout, page, 3, keep_pick, NULL);

	CHECK(picks == 1);
	CHECK(picked[0].kind == PICK_OUT);
	CHECK(picked[0].tid == TID);
	CHECK(picked[0].cpu == 3);
	CHECK(picked[0].at_ns == 1007);
	CHECK(!picked[0].runnable);
}

int main(void)
{
	a_run_goes_from_the_time_of_the_timer_to_the_sleep();
	a_timer_of_another_clock_is_due_when_its_callback_says();
	a_wake_up_by_another_thread_has_no_timer();
	a_time_that_has_passed_begins_a_run_without_a_sleep();
	a_run_that_ends_behind_the_recording_is_counted_as_cut();
	a_timer_of_another_thread_never_takes_the_place_of_one_that_waits();
	where_a_waiting_timer_had_no_place_the_next_run_says_so();
	a_timer_that_is_taken_late_begins_a_run_at_its_time();
	an_expiry_that_woke_nobody_is_of_no_later_sleep_in_its_place();
	a_sleep_that_ends_while_its_thread_waits_for_a_cpu_is_over();
	an_expiry_of_a_sleep_is_not_taken_by_the_next_one_in_its_place();
	a_timer_that_is_no_sleep_is_still_taken_late();
	a_run_within_a_sleep_that_goes_on_is_marked();
	a_wait_for_another_time_is_no_sleep_that_goes_on();
	a_time_that_comes_while_another_is_served_is_noted();
	a_time_that_comes_before_it_has_the_cpu_begins_its_run();
	a_run_within_a_sleep_is_one_where_its_time_did_not_come();
	switches_are_read_from_a_page_by_the_kernels_format();
	return 0;
}
