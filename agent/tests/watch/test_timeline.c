/* SPDX-License-Identifier: MIT */
/* How long things lasted, who woke a thread, and what a lock's owner did meanwhile. */
#include "watch/timeline.h"

#include <string.h>

#include "tests/check.h"

enum { HIGH = 20, MIDDLE = 50, LOW = 80, ORDINARY = 120 };
enum { WORD = 0x1000 };
enum { WAITER = 1, OWNER = 2, BETWEEN = 3 };

static void out_to(struct timeline *t, int64_t t_ns, bool runnable, int own, int tid,
		   int priority)
{
	struct timeline_record r = {
		.t_ns = t_ns,
		.what = TIMELINE_OUT,
		.runnable = runnable,
		.priority = own,
		.other = { .tid = tid, .priority = priority, .name = "other" },
	};

	timeline_add(t, &r, NULL);
}

static void at(struct timeline *t, int64_t t_ns, enum timeline_what what)
{
	timeline_add(t, &(struct timeline_record){ .t_ns = t_ns, .what = what }, NULL);
}

static void call(struct timeline *t, int64_t t_ns, enum timeline_kind kind,
		 const char *name)
{
	struct timeline_record r = {
		.t_ns = t_ns,
		.what = TIMELINE_CALL,
		.kind = kind,
		.call = name,
		.number = name[0], /* another one for each */
		.futex = { .word = kind == TIMED_LOCK_WAIT ? WORD : 0, .value = 2 },
	};

	timeline_add(t, &r, NULL);
}

static void wake_by(struct timeline *t, int64_t t_ns, int priority,
		    enum timeline_context context, const struct timeline *waker)
{
	struct timeline_record r = {
		.t_ns = t_ns,
		.what = TIMELINE_WAKE,
		.priority = HIGH,
		.other = { .tid = OWNER, .priority = priority, .name = "owner" },
		.context = context,
	};

	timeline_add(t, &r, waker);
}

static void the_longest_of_each_kind_is_kept(void)
{
	struct timeline t = { 0 };

	call(&t, 100, TIMED_BLOCKING_CALL, "read");
	at(&t, 140, TIMELINE_RETURN);
	call(&t, 200, TIMED_BLOCKING_CALL, "fsync");
	at(&t, 290, TIMELINE_RETURN);
	call(&t, 300, TIMED_BLOCKING_CALL, "write");
	at(&t, 310, TIMELINE_RETURN);
	at(&t, 400, TIMELINE_FAULT);
	at(&t, 407, TIMELINE_MAJOR);

	CHECK(t.timed[TIMED_BLOCKING_CALL].count == 3);
	CHECK(t.timed[TIMED_BLOCKING_CALL].total_ns == 140);
	CHECK(t.timed[TIMED_BLOCKING_CALL].worst_ns == 90);
	CHECK(t.timed[TIMED_BLOCKING_CALL].worst_at_ns == 200);
	CHECK(strcmp(t.timed[TIMED_BLOCKING_CALL].worst_in, "fsync") == 0);
	CHECK(t.calls == 3 && strcmp(t.call[1].name, "fsync") == 0);
	CHECK(t.call[0].times.worst_ns == 40 && t.call[1].times.worst_ns == 90);
	CHECK(t.timed[TIMED_MAJOR_FAULT].worst_ns == 7);
	CHECK(t.timed[TIMED_MINOR_FAULT].count == 0);
}

/* Linux spins for a lock that inherits while its owner runs on another CPU. */
static void who_ended_a_wait_without_a_sleep_is_known(void)
{
	struct timeline t = { 0 };

	call(&t, 100, TIMED_LOCK_WAIT, "futex");
	wake_by(&t, 400, LOW, IN_THREAD, NULL);
	at(&t, 410, TIMELINE_RETURN);
	call(&t, 500, TIMED_LOCK_WAIT, "futex");
	at(&t, 510, TIMELINE_RETURN);

	CHECK(t.words == 1 && t.word[0].times.count == 2);
	CHECK(t.word[0].has_waker && t.word[0].times.worst_ns == 310);
	CHECK(strcmp(t.word[0].times.worst_in, "owner") == 0);
}

static void what_began_before_the_watching_is_not_timed(void)
{
	struct timeline t = { 0 };

	at(&t, 10, TIMELINE_RETURN);
	at(&t, 20, TIMELINE_MINOR);
	at(&t, 30, TIMELINE_IN);
	for (int i = 0; i < TIMED_KINDS; i++)
		CHECK(t.timed[i].count == 0);
}

static void who_takes_the_cpu_tells_preempted_from_set_aside(void)
{
	struct timeline t = { 0 };

	out_to(&t, 100, true, HIGH, BETWEEN, HIGH - 1);
	at(&t, 130, TIMELINE_IN);
	out_to(&t, 200, true, HIGH, BETWEEN, ORDINARY);
	at(&t, 250, TIMELINE_IN);
	out_to(&t, 300, false, HIGH, BETWEEN, ORDINARY); /* it sleeps */
	at(&t, 900, TIMELINE_IN);
	out_to(&t, 1000, true, ORDINARY, BETWEEN, ORDINARY); /* it is ordinary then */
	at(&t, 1900, TIMELINE_IN);

	CHECK(t.timed[TIMED_PREEMPTED].count == 1);
	CHECK(t.timed[TIMED_PREEMPTED].worst_ns == 30);
	CHECK(t.timed[TIMED_SET_ASIDE].count == 1);
	CHECK(t.timed[TIMED_SET_ASIDE].worst_ns == 50);
	CHECK(strcmp(t.timed[TIMED_PREEMPTED].worst_in, "other") == 0);
}

static void less_urgent_wakers_are_counted(void)
{
	struct timeline t = { 0 };

	wake_by(&t, 1, LOW, IN_THREAD, NULL);
	wake_by(&t, 2, LOW, IN_THREAD, NULL);
	wake_by(&t, 3, ORDINARY, IN_SOFTIRQ, NULL);
	wake_by(&t, 4, HIGH, IN_THREAD, NULL);
	wake_by(&t, 5, HIGH - 1, IN_THREAD, NULL);
	wake_by(&t, 6, ORDINARY, IN_INTERRUPT, NULL);
	wake_by(&t, 7, INT32_MIN, IN_THREAD, NULL); /* it is gone: unknown */

	CHECK(t.wakers == 2 && t.waker[0].count == 2 && !t.waker[0].softirq);
	CHECK(t.waker[1].count == 1 && t.waker[1].softirq);
	CHECK(t.inversions == 0);
}

static void who_ends_a_wait_for_the_kernel_is_no_waker(void)
{
	struct timeline t = { 0 };
	struct timeline_record out = {
		.t_ns = 100, .what = TIMELINE_OUT, .held = true, .priority = HIGH
	};

	timeline_add(&t, &out, NULL);
	wake_by(&t, 170, LOW, IN_THREAD, NULL);
	at(&t, 190, TIMELINE_IN);
	wake_by(&t, 300, LOW, IN_THREAD, NULL); /* this one is */

	CHECK(t.wakers == 1 && t.waker[0].count == 1);
	CHECK(t.timed[TIMED_KERNEL_WAIT].count == 1);
	CHECK(t.timed[TIMED_KERNEL_WAIT].worst_at_ns == 100);
	CHECK(t.timed[TIMED_KERNEL_WAIT].worst_ns == 70);
	CHECK(strcmp(t.timed[TIMED_KERNEL_WAIT].worst_in, "owner") == 0);
}

static struct timeline owner_that_was_preempted_by(int priority)
{
	struct timeline owner = { 0 };

	out_to(&owner, 50, true, LOW, BETWEEN, priority); /* before anybody waits */
	at(&owner, 60, TIMELINE_IN);
	out_to(&owner, 120, true, LOW, BETWEEN, priority);
	at(&owner, 170, TIMELINE_IN);
	return owner;
}

static void an_owner_that_cannot_run_for_one_between_is_an_inversion(void)
{
	const struct timeline owner = owner_that_was_preempted_by(MIDDLE);
	struct timeline t = { 0 };

	call(&t, 100, TIMED_LOCK_WAIT, "futex");
	wake_by(&t, 180, LOW, IN_THREAD, &owner);

	CHECK(t.inversions == 1);
	CHECK(t.inversion[0].owner.tid == OWNER && t.inversion[0].by.tid == BETWEEN);
	CHECK(t.inversion[0].waited.count == 1 && t.inversion[0].waited.worst_ns == 50);
	CHECK(t.inversion[0].waited.worst_at_ns == 120 && t.inversion[0].word == WORD);
	CHECK(t.wakers == 1 && t.waker[0].word == WORD);
}

static void it_is_none_for_a_more_urgent_thread_or_another_wait(void)
{
	const struct timeline above = owner_that_was_preempted_by(HIGH - 1);
	const struct timeline between = owner_that_was_preempted_by(MIDDLE);
	struct timeline t = { 0 };

	call(&t, 100, TIMED_LOCK_WAIT, "futex");
	wake_by(&t, 180, LOW, IN_THREAD, &above);
	at(&t, 181, TIMELINE_RETURN);
	wake_by(&t, 190, LOW, IN_THREAD, &between); /* it waited for no lock */
	call(&t, 200, TIMED_LOCK_WAIT, "futex");
	wake_by(&t, 210, LOW, IN_THREAD, &between); /* after all that */

	CHECK(t.inversions == 0 && t.wakers == 2);
	CHECK(t.waker[0].word == WORD && t.waker[0].count == 2 && !t.waker[1].word);
}

static void more_of_them_than_have_room_are_counted(void)
{
	struct timeline t = { 0 };
	struct timeline_record r = { .what = TIMELINE_WAKE,
				     .priority = HIGH,
				     .other = { .priority = LOW } };

	for (r.other.tid = 1; r.other.tid <= TIMELINE_WAKERS + 3; r.other.tid++)
		timeline_add(&t, &r, NULL);
	CHECK(t.wakers == TIMELINE_WAKERS && t.other_wakers == 3);
}

static void sleep_in(struct timeline *t, int64_t from_ns, int64_t to_ns, bool held)
{
	struct timeline_record out = {
		.t_ns = from_ns, .what = TIMELINE_OUT, .held = held, .priority = HIGH
	};

	timeline_add(t, &out, NULL);
	at(t, to_ns, TIMELINE_IN);
}

static void a_call_that_sleeps_may_block_whatever_its_arguments_say(void)
{
	struct timeline t = { 0 };
	struct timeline_record r = {
		.what = TIMELINE_CALL,
		.kind = TIMED_BLOCKING_CALL,
		.call = "poll",
		.number = 7,
		.cannot_block = true,
	};

	for (r.t_ns = 100; r.t_ns < 400; r.t_ns += 100) {
		timeline_add(&t, &r, NULL);
		if (r.t_ns == 200)
			sleep_in(&t, 210, 250, false);
		at(&t, r.t_ns + 60, TIMELINE_RETURN);
	}

	CHECK(t.calls == 1 && t.call[0].harmless == 2);
	CHECK(t.call[0].times.count == 1 && t.call[0].times.worst_ns == 60);
	CHECK(t.call[0].slept.count == 1 && t.call[0].slept.worst_ns == 40);
	CHECK(t.call[0].held.count == 0);
}

static void a_call_whose_descriptor_is_gone_may_block_if_it_sleeps(void)
{
	struct timeline t = { 0 };
	struct timeline_record r = { .what = TIMELINE_CALL,
				     .kind = TIMED_BLOCKING_CALL,
				     .call = "readv",
				     .gone = true };

	for (r.t_ns = 100; r.t_ns < 400; r.t_ns += 100) {
		timeline_add(&t, &r, NULL);
		if (r.t_ns == 200)
			sleep_in(&t, 210, 250, false);
		at(&t, r.t_ns + 60, TIMELINE_RETURN);
	}

	CHECK(t.call[0].undecided == 2 && t.call[0].harmless == 0);
	CHECK(t.call[0].times.count == 1);
}

static struct timeline_call settled(unsigned int could, unsigned int could_not)
{
	struct timeline_call c = {
		.times = { .count = 1, .total_ns = 5, .worst_ns = 5 },
		.unsure = { .count = 3, .total_ns = 20, .worst_ns = 9 },
		.could = could,
		.could_not = could_not,
	};

	timeline_settle(&c);
	timeline_settle(&c); /* once more changes nothing */
	return c;
}

static void calls_without_a_copy_are_judged_by_those_with_one(void)
{
	CHECK(settled(0, 2).harmless == 3 && settled(0, 2).times.count == 1);
	CHECK(settled(1, 2).harmless == 0 && settled(1, 2).times.count == 4);
	CHECK(settled(0, 0).times.total_ns == 25 && settled(0, 0).times.worst_ns == 9);
}

static void a_wait_for_the_kernel_has_its_call_and_who_ended_it(void)
{
	struct timeline t = { .sees_wakers_ns = 1 };

	call(&t, 100, TIMED_BLOCKING_CALL, "membarrier");
	timeline_add(&t,
		     &(struct timeline_record){ .t_ns = 110,
						.what = TIMELINE_OUT,
						.held = true,
						.priority = HIGH },
		     NULL);
	wake_by(&t, 170, LOW, IN_THREAD, NULL);
	at(&t, 190, TIMELINE_IN);
	sleep_in(&t, 200, 205, true); /* ended by what is not looked at */
	at(&t, 210, TIMELINE_RETURN);
	sleep_in(&t, 300, 400, false);

	CHECK(t.call[0].held.count == 2 && t.call[0].held.worst_ns == 60);
	CHECK(strcmp(t.call[0].held.worst_in, "owner") == 0);
	CHECK(t.timed[TIMED_KERNEL_WAIT].count == 2);
	CHECK(t.slept_elsewhere_ns == 100);
	sleep_in(&t, 500, 900, true);
	CHECK(strcmp(t.timed[TIMED_KERNEL_WAIT].worst_in, "an interrupt") == 0);
}

/* It reads the memory of the process, whose lock the call then waits for. */
static void a_wait_for_the_agent_is_none_of_the_call(void)
{
	struct timeline t = { .sees_wakers_ns = 1 };

	call(&t, 100, TIMED_MEMORY_CALL, "munmap");
	timeline_add(&t,
		     &(struct timeline_record){ .t_ns = 110,
						.what = TIMELINE_OUT,
						.held = true,
						.priority = HIGH },
		     NULL);
	timeline_add(&t,
		     &(struct timeline_record){ .t_ns = 170,
						.what = TIMELINE_WAKE,
						.by_agent = true,
						.other = { .name = "rtscope-agent" } },
		     NULL);
	at(&t, 190, TIMELINE_IN);
	sleep_in(&t, 200, 205, true);
	at(&t, 210, TIMELINE_RETURN);

	CHECK(t.call[0].slept.count == 2);
	CHECK(t.call[0].held.count == 1 && t.call[0].held.worst_ns == 5);
	CHECK(t.timed[TIMED_KERNEL_WAIT].count == 2);
	CHECK(strcmp(t.timed[TIMED_KERNEL_WAIT].worst_in, "rtscope-agent") == 0);
}

static const char *ender_of_a_wait_from(int64_t from_ns)
{
	static struct timeline t;

	t = (struct timeline){ .sees_wakers_ns = 150 };
	call(&t, 90, TIMED_BLOCKING_CALL, "membarrier");
	sleep_in(&t, from_ns, 200, true);
	return t.call[0].held.worst_in;
}

static void who_ended_a_wait_is_unknown_before_wake_ups_are_looked_at(void)
{
	CHECK(strcmp(ender_of_a_wait_from(140), "") == 0);
	CHECK(strcmp(ender_of_a_wait_from(160), "an interrupt") == 0);
}

static void the_wait_after_a_mark_is_one_for_a_lock(void)
{
	struct timeline t = { 0 };

	at(&t, 90, TIMELINE_MARK);
	call(&t, 100, TIMED_LOCK_WAIT, "futex");
	at(&t, 110, TIMELINE_RETURN);
	call(&t, 200, TIMED_LOCK_WAIT, "futex");
	at(&t, 205, TIMELINE_RETURN);

	CHECK(t.words == 2 && t.word[0].futex.word == (WORD | 1));
	CHECK(t.word[0].times.worst_ns == 10 && t.word[1].times.worst_ns == 5);
}

static void what_the_owner_did_meanwhile_is_told(void)
{
	struct timeline owner = { 0 }, t = { 0 };

	out_to(&owner, 120, true, LOW, BETWEEN, MIDDLE);
	at(&owner, 150, TIMELINE_IN);
	call(&owner, 155, TIMED_BLOCKING_CALL, "fsync");
	sleep_in(&owner, 160, 180, true);
	at(&owner, 185, TIMELINE_RETURN);
	call(&t, 100, TIMED_LOCK_WAIT, "futex");
	sleep_in(&t, 101, 102, false);
	out_to(&t, 105, false, HIGH, BETWEEN, MIDDLE);
	wake_by(&t, 200, LOW, IN_THREAD, &owner);
	at(&t, 202, TIMELINE_IN);
	at(&t, 205, TIMELINE_RETURN);

	CHECK(t.words == 1 && t.word[0].futex.word == WORD && t.word[0].has_waker);
	CHECK(t.word[0].waker.tid == OWNER && t.word[0].times.worst_ns == 105);
	CHECK(t.word[0].meanwhile.known && t.word[0].meanwhile.aside_ns == 30);
	CHECK(t.word[0].meanwhile.slept_ns == 20 && t.word[0].meanwhile.ran_ns == 50);
	CHECK(strcmp(t.word[0].meanwhile.slept_in, "fsync") == 0);
}

static void a_word_that_its_waiter_wakes_later_and_its_values_are_remembered(void)
{
	struct timeline t = { 0 };
	struct timeline_record r = { .what = TIMELINE_UNLOCK,
				     .futex = { .word = WORD } };

	timeline_add(&t, &r, NULL); /* nobody waited for it before */
	call(&t, 100, TIMED_LOCK_WAIT, "futex");
	at(&t, 110, TIMELINE_RETURN);
	timeline_add(&t, &r, NULL);
	at(&t, 120, TIMELINE_RETURN); /* of the wake-up: no wait */
	call(&t, 130, TIMED_LOCK_WAIT, "futex");
	at(&t, 137, TIMELINE_RETURN);

	CHECK(t.words == 1 && t.word[0].wakes == 1 && !t.word[0].values_differ);
	CHECK(t.word[0].times.count == 2 && t.word[0].times.total_ns == 17);
	t.in.futex.value = 3;
	t.call_ns = 150;
	at(&t, 160, TIMELINE_RETURN);
	CHECK(t.word[0].values_differ);
}

static void what_the_owner_did_is_unknown_if_not_all_of_it_is_remembered(void)
{
	struct timeline owner = { 0 }, t = { 0 };

	for (int i = 0; i < TIMELINE_HISTORY + 1; i++)
		sleep_in(&owner, 200 + 2 * i, 201 + 2 * i, false);
	call(&t, 100, TIMED_LOCK_WAIT, "futex");
	out_to(&t, 105, false, HIGH, BETWEEN, MIDDLE);
	wake_by(&t, 400, LOW, IN_THREAD, &owner);
	at(&t, 402, TIMELINE_IN);
	at(&t, 405, TIMELINE_RETURN);

	CHECK(t.word[0].has_waker && !t.word[0].meanwhile.known);
}

static void what_the_owner_did_is_no_more_than_the_wait_if_a_switch_is_lost(void)
{
	struct timeline owner = { 0 }, t = { 0 };

	out_to(&owner, 110, true, LOW, BETWEEN, MIDDLE); /* it came back unseen */
	out_to(&owner, 150, false, LOW, BETWEEN, MIDDLE);
	call(&t, 100, TIMED_LOCK_WAIT, "futex");
	out_to(&t, 105, false, HIGH, BETWEEN, MIDDLE);
	wake_by(&t, 200, LOW, IN_THREAD, &owner);
	at(&t, 202, TIMELINE_IN);
	at(&t, 205, TIMELINE_RETURN);

	CHECK(t.word[0].meanwhile.known && t.word[0].meanwhile.ran_ns == 10);
	CHECK(t.word[0].meanwhile.aside_ns == 40 && t.word[0].meanwhile.slept_ns == 50);
}

static void calls_and_words_without_room_are_counted(void)
{
	struct timeline t = { 0 };
	struct timeline_record r = { .what = TIMELINE_CALL, .t_ns = 1, .call = "call" };

	for (r.number = 0; r.number < TIMELINE_CALLS + 2; r.number++) {
		r.kind = TIMED_BLOCKING_CALL;
		timeline_add(&t, &r, NULL);
		at(&t, 2, TIMELINE_RETURN);
		r.kind = TIMED_LOCK_WAIT;
		r.futex.word = (uint64_t)r.number + 1;
		timeline_add(&t, &r, NULL);
		at(&t, 2, TIMELINE_RETURN);
	}
	CHECK(t.calls == TIMELINE_CALLS && t.other_calls == 2);
	CHECK(t.words == TIMELINE_WORDS);
	CHECK(t.other_words == TIMELINE_CALLS + 2 - TIMELINE_WORDS);
}

int main(void)
{
	the_longest_of_each_kind_is_kept();
	who_ended_a_wait_without_a_sleep_is_known();
	what_began_before_the_watching_is_not_timed();
	who_takes_the_cpu_tells_preempted_from_set_aside();
	less_urgent_wakers_are_counted();
	who_ends_a_wait_for_the_kernel_is_no_waker();
	an_owner_that_cannot_run_for_one_between_is_an_inversion();
	it_is_none_for_a_more_urgent_thread_or_another_wait();
	more_of_them_than_have_room_are_counted();
	a_call_that_sleeps_may_block_whatever_its_arguments_say();
	a_call_whose_descriptor_is_gone_may_block_if_it_sleeps();
	calls_without_a_copy_are_judged_by_those_with_one();
	a_wait_for_the_kernel_has_its_call_and_who_ended_it();
	a_wait_for_the_agent_is_none_of_the_call();
	who_ended_a_wait_is_unknown_before_wake_ups_are_looked_at();
	the_wait_after_a_mark_is_one_for_a_lock();
	what_the_owner_did_meanwhile_is_told();
	a_word_that_its_waiter_wakes_later_and_its_values_are_remembered();
	what_the_owner_did_is_unknown_if_not_all_of_it_is_remembered();
	what_the_owner_did_is_no_more_than_the_wait_if_a_switch_is_lost();
	calls_and_words_without_room_are_counted();
	return 0;
}
