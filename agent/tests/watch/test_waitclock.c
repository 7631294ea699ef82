/* SPDX-License-Identifier: MIT */
/* waitclock: which waits end when somebody sets a clock; timeline counts them. */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>

#include "tests/check.h"
#include "watch/waitclock.h"

#define PRIVATE  128
#define REALTIME 256
#define WORD     0x1000
#define TIME     0x2000

static struct timeline_record futex(uint64_t operation, uint64_t time)
{
	const uint64_t args[WAITCLOCK_ARGS] = { WORD, operation, 2, time };
	struct timeline_record r = { .what = TIMELINE_CALL,
				     .kind = TIMED_LOCK_WAIT,
				     .call = "futex" };

	waitclock_read_futex("futex", args, &r);
	return r;
}

static void a_deadline_of_the_clock_that_others_set(void)
{
	CHECK(futex(FUTEX_WAIT_BITSET | REALTIME | PRIVATE, TIME).settable ==
	      SETTABLE_DEADLINE);
	CHECK(futex(FUTEX_WAIT_REQUEUE_PI | REALTIME, TIME).settable);
	CHECK(futex(FUTEX_LOCK_PI | PRIVATE, TIME).settable); /* it has no other */
	CHECK(futex(13 | REALTIME, TIME).settable);           /* FUTEX_LOCK_PI2 */
}

static void no_deadline_an_interval_or_another_clock(void)
{
	CHECK(!futex(FUTEX_WAIT_BITSET | REALTIME | PRIVATE, 0).settable);
	CHECK(!futex(FUTEX_LOCK_PI | PRIVATE, 0).settable);
	CHECK(!futex(FUTEX_WAIT_BITSET | PRIVATE, TIME).settable);
	CHECK(!futex(13 | PRIVATE, TIME).settable);
	CHECK(!futex(FUTEX_WAIT | REALTIME, TIME).settable);
	CHECK(!futex(FUTEX_WAKE | REALTIME, TIME).settable);
	CHECK(futex(FUTEX_WAKE | REALTIME, TIME).what == TIMELINE_UNLOCK);
}

static void other_calls_have_their_time_elsewhere(void)
{
	const uint64_t timed[WAITCLOCK_ARGS] = { 3, 0, 0, TIME, TIME, 0 };
	const uint64_t monotonic[WAITCLOCK_ARGS] = { 3, 0, 0, TIME, 1, 1 };
	const uint64_t without[WAITCLOCK_ARGS] = { 3, 0, 0, 0, 0, 0 };
	struct timeline_record r = { .what = TIMELINE_CALL };

	CHECK(waitclock_is_settable("mq_timedreceive", timed));
	CHECK(waitclock_is_settable("mq_timedsend_time64", timed));
	CHECK(!waitclock_is_settable("mq_timedreceive", without));
	CHECK(!waitclock_is_settable("futex_waitv", monotonic));
	CHECK(!waitclock_is_settable("ppoll", timed));
	waitclock_read_futex("futex_wait", timed, &r);
	CHECK(r.settable == SETTABLE_DEADLINE && r.futex.value == 0);
	waitclock_read_futex("futex_wait", monotonic, &r);
	CHECK(!r.settable);
}

static void a_timer_is_set_to_a_time_of_its_clock(void)
{
	CHECK(waitclock_is_settable_timer("flags:\t02\nclockid: 0\nticks: 0\n"
					  "settime flags: 01\n"));
	CHECK(waitclock_is_settable_timer("clockid: 8\nsettime flags: 03\n"));
	CHECK(!waitclock_is_settable_timer("clockid: 0\nsettime flags: 00\n"));
	CHECK(!waitclock_is_settable_timer("clockid: 1\nsettime flags: 01\n"));
	CHECK(!waitclock_is_settable_timer("flags:\t02\neventfd-count: 0\n"));
}

static void wait(struct timeline *t, struct timeline_record r, int result)
{
	struct timeline_record back = { .what = TIMELINE_RETURN, .fd = result + 1 };

	r.t_ns = t->timed[r.kind].count * 10 + 1;
	back.t_ns = r.t_ns + 5;
	timeline_add(t, &r, NULL);
	timeline_add(t, &back, NULL);
}

static void waits_that_their_time_ended_are_counted(void)
{
	static struct timeline t;
	struct timeline_record read = { .what = TIMELINE_CALL,
					.kind = TIMED_BLOCKING_CALL,
					.call = "read",
					.settable = SETTABLE_TIMER };

	wait(&t, futex(FUTEX_WAIT_BITSET | REALTIME, TIME), -ETIMEDOUT);
	wait(&t, futex(FUTEX_WAIT_BITSET | REALTIME, TIME), 0);
	wait(&t, futex(FUTEX_WAIT_BITSET | REALTIME, 0), -EAGAIN);
	CHECK(t.words == 1 && t.word[0].settable.waits == 2);
	CHECK(t.word[0].settable.expired == 1);
	wait(&t, read, 8);
	wait(&t, read, -EAGAIN);
	CHECK(t.calls == 1 && t.call[0].settable.waits == 1);
	CHECK(t.call[0].settable.expired == 1);
}

int main(void)
{
	a_deadline_of_the_clock_that_others_set();
	no_deadline_an_interval_or_another_clock();
	other_calls_have_their_time_elsewhere();
	a_timer_is_set_to_a_time_of_its_clock();
	waits_that_their_time_ended_are_counted();
	return 0;
}
