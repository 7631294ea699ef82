/* SPDX-License-Identifier: MIT */
/* The waits for one of several things, and the runs of a thread that slept in them. */
#include <stdint.h>
#include <string.h>

#include "cycles/cyclepick.h"
#include "tests/cyclepicks.h"
#include "tests/tracepages.h"

#define EPOLL 0x1000
#define POLL  0x2000

static struct pick picked[4];
static unsigned int picks;

static void keep_pick(void *context, const struct pick *p)
{
	(void)context;
	CHECK(picks < 4);
	picked[picks++] = *p;
}

static void sleep_in(int64_t at_ns, uint64_t wait)
{
	take(PICK_WAITS, at_ns, (struct pick){ .wait = wait });
	take(PICK_OUT, at_ns + 10, (struct pick){ 0 });
}

static void goes_on(int64_t at_ns)
{
	take(PICK_IN, at_ns, (struct pick){ 0 });
	take(PICK_GOES_ON, at_ns + 10, (struct pick){ 0 });
}

static void a_run_has_the_number_of_the_wait_that_it_slept_in(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	take(PICK_WAITS, 150, (struct pick){ .wait = EPOLL });
	arm_and_sleep(200, MS, false);
	expire_and_wake(MS);
	goes_on(MS + 50);
	take(PICK_OUT, MS + 90, (struct pick){ 0 }); /* for a lock */
	take(PICK_WAKING, 2 * MS, (struct pick){ .by = 5 });
	take(PICK_IN, 2 * MS + 50, (struct pick){ 0 });
	sleep_in(2 * MS + 90, POLL);
	take(PICK_WAKING, 3 * MS, (struct pick){ .by = 5 });
	goes_on(3 * MS + 50);
	sleep_in(3 * MS + 90, EPOLL);
	take(PICK_WAKING, 4 * MS, (struct pick){ .by = 5 });
	goes_on(4 * MS + 50);
	take(PICK_OUT, 4 * MS + 90, (struct pick){ 0 });

	CHECK(runs == 4);
	CHECK(run[0].flags == 1 * CYCLE_WAIT);
	CHECK(run[1].flags == 0);
	CHECK(run[2].flags == 2 * CYCLE_WAIT);
	CHECK(run[3].flags == 1 * CYCLE_WAIT);
}

static void one_that_is_preempted_in_its_wait_sleeps_there_all_the_same(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	take(PICK_WAITS, 150, (struct pick){ .wait = EPOLL });
	take(PICK_OUT, 200, (struct pick){ .runnable = true });
	take(PICK_IN, 300, (struct pick){ 0 });
	take(PICK_OUT, 400, (struct pick){ 0 });
	take(PICK_WAKING, MS, (struct pick){ .by = 5 });
	goes_on(MS + 50);
	take(PICK_OUT, MS + 90, (struct pick){ 0 });

	CHECK(runs == 1);
	CHECK(run[0].flags == CYCLE_WAIT);
}

static void of_more_waits_than_have_room_nothing_is_said(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	for (unsigned int i = 0; i < CYCLES_WAITS + 2; i++) {
		sleep_in(i * MS + 200, EPOLL + i);
		runs = 0;
		take(PICK_WAKING, (i + 1) * MS, (struct pick){ .by = 5 });
		goes_on((i + 1) * MS + 50);
		take(PICK_OUT, (i + 1) * MS + 90, (struct pick){ 0 });
		CHECK(run[0].flags == (i < CYCLES_WAITS ? (i + 1) * CYCLE_WAIT : 0));
		take(PICK_WAKING, (i + 1) * MS + 95, (struct pick){ .by = 5 });
		take(PICK_IN, (i + 1) * MS + 99, (struct pick){ 0 });
	}
}

static void events_that_were_lost_leave_no_wait(void)
{
	begin_cycles();
	take(PICK_IN, 100, (struct pick){ 0 });
	take(PICK_WAITS, 150, (struct pick){ .wait = EPOLL });
	take(PICK_LOST, 200, (struct pick){ .when_ns = 300 });
	take(PICK_IN, 400, (struct pick){ 0 });
	take(PICK_OUT, 500, (struct pick){ 0 });
	take(PICK_WAKING, MS, (struct pick){ .by = 5 });
	take(PICK_IN, MS + 50, (struct pick){ 0 });
	take(PICK_OUT, MS + 90, (struct pick){ 0 });

	CHECK(runs == 1);
	CHECK(run[0].flags == CYCLE_GAP);
}

static void put_call(unsigned char *page, uint16_t id, int64_t call, uint64_t argument)
{
	const size_t at = 20 + commit_of(page);
	unsigned char event[32] = { 0 };
	const int32_t tid = TID;

	memcpy(event, &id, sizeof(id));
	memcpy(event + 4, &tid, sizeof(tid));
	memcpy(event + 8, &call, sizeof(call));
	memcpy(event + 16, &argument, sizeof(argument));
	put_event(page, sizeof(event) / 4, 7, 0, 4 + sizeof(event));
	memcpy(page + at, event, sizeof(event));
}

static void calls_are_read_from_a_page_by_the_kernels_format(void)
{
	static struct cyclepick p;
	const struct tracepage_layout layout = layout_of_tests();
	unsigned char page[PAGE_BYTES];

	cyclepick_format(&p, "sched_switch",
			 "ID: 1\n\tfield:int common_pid;\toffset:4;\tsize:4;\n");
	cyclepick_format(&p, "sys_enter",
			 "ID: 400\n\tfield:long id;\toffset:8;\tsize:8;\n"
			 "\tfield:unsigned long args[6];\toffset:16;\tsize:48;\n");
	cyclepick_format(&p, "sys_exit", "ID: 401\n");
	CHECK(cyclepick_watch(&p, TID));
	begin_page(page, 1000);
	put_call(page, 400, 232, 5);
	put_call(page, 401, 232, 0);
	put_call(page, 400, 232, 6);
	picks = 0;
	cyclepick_page(&p, &layout, page, 3, keep_pick, NULL);

	CHECK(picks == 3);
	CHECK(picked[0].kind == PICK_WAITS && picked[1].kind == PICK_GOES_ON);
	CHECK(picked[0].tid == TID && picked[1].tid == TID);
	CHECK(picked[0].wait && picked[1].wait == 0);
	CHECK(picked[2].wait && picked[2].wait != picked[0].wait);
}

int main(void)
{
	a_run_has_the_number_of_the_wait_that_it_slept_in();
	one_that_is_preempted_in_its_wait_sleeps_there_all_the_same();
	of_more_waits_than_have_room_nothing_is_said();
	events_that_were_lost_leave_no_wait();
	calls_are_read_from_a_page_by_the_kernels_format();
	return 0;
}
