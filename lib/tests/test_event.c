/* SPDX-License-Identifier: MIT */
/* Tasks woken by a descriptor, and the call on a miss; no latency is asserted. */
#include "../rtscope_task.c"

#include <sys/socket.h>
#include <sys/timerfd.h>

#include "check.h"

static const struct rtsc_setup small = { .heap_bytes = RTSC_NONE,
					 .main_stack_bytes = RTSC_NONE,
					 .tasks = 4,
					 .unlocked = true,
					 .private_statistics = true };

static struct rtsc *app;

struct seen {
	uint64_t cycles, skipped, timed_out, bytes, most;
	int fd;
	int64_t told_ns; /* how long before the wake-up the event is said to be; 0: no */
};

static void work(struct rtsc_task *task, void *arg)
{
	struct seen *seen = (struct seen *)arg;
	struct rtsc_cycle cycle;
	char byte;

	while (seen->cycles < seen->most && rtsc_wait(task, &cycle)) {
		CHECK(cycle.number == seen->cycles);
		CHECK(cycle.release_ns == cycle.wake_ns);
		seen->cycles++;
		seen->skipped += cycle.skipped;
		seen->timed_out += cycle.timed_out;
		if (seen->told_ns)
			rtsc_event_time(task, cycle.wake_ns - seen->told_ns);
		if (seen->fd >= 0 && !cycle.timed_out)
			seen->bytes += (uint64_t)read(seen->fd, &byte, 1);
	}
}

static struct rtsc_config config(enum rtsc_event event, int fd)
{
	struct rtsc_config c = {
		.name = "event", .event = event, .event_fd = fd, .stack_bytes = 1 << 20
	};

	return c;
}

static struct rtsc_task *begin(const struct rtsc_config *c, struct seen *seen)
{
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;

	CHECK(rtsc_open(&app, &small, &report) == 0);
	CHECK(rtsc_start(app, c, work, seen, &task, &report) == 0);
	rtsc_go(app);
	return task;
}

/* Of the task so far. */
static struct rtsc_slot now_of(const struct rtsc_task *task)
{
	struct rtsc_slot slot;

	while (!rtsc_snapshot(rtsc_statistics(task), &slot))
		;
	return slot;
}

static void until_cycles(const struct rtsc_task *task, uint64_t cycles)
{
	while (now_of(task).cycles < cycles)
		sched_yield();
}

static void each_event_of_a_counter_is_a_cycle_or_is_counted(void)
{
	const int fd = eventfd(0, EFD_NONBLOCK);
	struct seen seen = { .most = UINT64_MAX, .fd = -1 };
	struct rtsc_config c = config(RTSC_EVENT_COUNTER, fd);
	struct rtsc_task *task = begin(&c, &seen);
	struct rtsc_slot slot;
	uint64_t sent = 0, one = 1, five = 5;

	for (int i = 0; i < 50; i++, sent++)
		CHECK(write(fd, &one, 8) == 8);
	CHECK(write(fd, &five, 8) == 8);
	sent += 5;
	do
		slot = now_of(task);
	while (slot.cycles + slot.skipped < sent);
	rtsc_stop(task);
	CHECK(rtsc_join(task) == 0);
	CHECK(seen.cycles + seen.skipped == sent && seen.skipped >= 4);
	slot = now_of(task);
	CHECK(slot.cycles == seen.cycles && slot.skipped == seen.skipped);
	CHECK(slot.period_ns == 0 && slot.overruns == 0 && slot.missed == 0);
	CHECK(slot.response.count == slot.cycles &&
	      slot.execution.count == slot.cycles);
	CHECK(slot.latency.count == 0 && slot.jitter.count == 0); /* not known */
	CHECK(slot.state == RTSC_STATE_ENDED);
	rtsc_close(app);
	close(fd);
}

static void a_timer_of_the_kernel_wakes_it(void)
{
	const struct itimerspec often = { { 0, 1000000 }, { 0, 1000000 } };
	const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct seen seen = { .most = 10, .fd = -1 };
	struct rtsc_config c = config(RTSC_EVENT_COUNTER, fd);
	struct rtsc_task *task = begin(&c, &seen);

	CHECK(timerfd_settime(fd, 0, &often, NULL) == 0);
	CHECK(rtsc_join(task) == 0 && seen.cycles == 10);
	rtsc_close(app);
	close(fd);
}

static void a_socket_wakes_it_until_it_hangs_up(void)
{
	struct seen seen = { .most = UINT64_MAX };
	struct rtsc_config c;
	struct rtsc_task *task;
	int end[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, end) == 0);
	seen.fd = end[0];
	c = config(RTSC_EVENT_READABLE, end[0]);
	task = begin(&c, &seen);
	for (uint64_t i = 0; i < 5; i++) {
		CHECK(write(end[1], "x", 1) == 1);
		until_cycles(task, i + 1);
	}
	CHECK(seen.bytes == 5);
	rtsc_stop(task);
	CHECK(rtsc_join(task) == 0);
	rtsc_close(app);
	close(end[0]);
	close(end[1]);

	CHECK(pipe(end) == 0);
	seen = (struct seen){ .most = UINT64_MAX, .fd = end[0] };
	c = config(RTSC_EVENT_READABLE, end[0]);
	task = begin(&c, &seen);
	close(end[1]); /* POLLHUP without POLLIN */
	CHECK(rtsc_join(task) == -EPIPE && seen.cycles == 0);
	rtsc_close(app);
	close(end[0]);
}

static void a_stop_ends_a_sleep_without_events(void)
{
	const int fd = eventfd(0, EFD_NONBLOCK);
	struct seen seen = { .most = UINT64_MAX, .fd = -1 };
	struct rtsc_config c = config(RTSC_EVENT_COUNTER, fd);
	struct rtsc_task *task = begin(&c, &seen);

	rtsc_stop(task);
	CHECK(rtsc_join(task) == 0 && seen.cycles == 0);
	rtsc_close(app);

	begin(&c, &seen); /* rtsc_close() stops it */
	rtsc_close(app);
	CHECK(seen.cycles == 0);
	close(fd);
}

static void a_timeout_is_a_cycle_that_says_so(void)
{
	const int fd = eventfd(0, EFD_NONBLOCK);
	struct seen seen = { .most = 3, .fd = -1 };
	struct rtsc_config c = config(RTSC_EVENT_COUNTER, fd);
	struct rtsc_task *task;

	c.event_timeout_ns = 1000000;
	task = begin(&c, &seen);
	CHECK(rtsc_join(task) == 0 && seen.cycles == 3 && seen.timed_out == 3);
	rtsc_close(app);
	close(fd);
}

static void the_time_of_an_event_gives_a_latency(void)
{
	const int fd = eventfd(0, EFD_NONBLOCK);
	struct seen seen = { .most = 2, .fd = -1, .told_ns = 5000 };
	struct rtsc_config c = config(RTSC_EVENT_COUNTER, fd);
	struct rtsc_task *task = begin(&c, &seen);
	uint64_t one = 1;

	CHECK(write(fd, &one, 8) == 8);
	until_cycles(task, 1);
	CHECK(write(fd, &one, 8) == 8);
	CHECK(rtsc_join(task) == 0);
	CHECK(now_of(task).latency.count == 2);
	CHECK(now_of(task).latency.min_ns == 5000 &&
	      now_of(task).latency.max_ns == 5000);
	CHECK(now_of(task).response.min_ns >= 5000);
	rtsc_close(app);
	close(fd);
}

static void a_descriptor_that_is_not_open_is_named(void)
{
	struct rtsc_report report = { 0 };
	struct rtsc_config c = config(RTSC_EVENT_READABLE, 9999);
	struct rtsc_task *task;
	struct seen seen = { .most = 1 };

	CHECK(rtsc_open(&app, &small, &report) == 0);
	CHECK(rtsc_start(app, &c, work, &seen, &task, &report) == -EBADF);
	CHECK(report.lacks &&
	      report.lack[report.lacks - 1].cause == RTSC_CAUSE_ARGUMENT);
	c.event_fd = STDIN_FILENO;
	c.event_timeout_ns = -1;
	CHECK(rtsc_start(app, &c, work, &seen, &task, &report) == -EINVAL);
	rtsc_close(app);
}

/* --- a call on each miss ---------------------------------------------------------- */

struct misses {
	uint64_t calls, last_number;
};

static void note_miss(struct rtsc_task *task, const struct rtsc_miss *miss, void *arg)
{
	struct misses *m = (struct misses *)arg;

	CHECK(rtsc_statistics(task)->number == miss->number);
	CHECK(miss->end_ns - miss->release_ns > miss->deadline_ns);
	CHECK(miss->deadline_ns == 1 && miss->wake_ns >= miss->release_ns);
	m->calls++;
	m->last_number = miss->number;
}

static void each_miss_is_a_call_with_its_cycle(void)
{
	const int fd = eventfd(3, EFD_NONBLOCK | EFD_SEMAPHORE);
	struct misses misses = { 0 };
	struct seen seen = { .most = 3, .fd = -1 };
	struct rtsc_config c = config(RTSC_EVENT_COUNTER, fd);
	struct rtsc_task *task;

	c.deadline_ns = 1; /* no cycle is that short */
	c.on_miss = note_miss;
	c.miss_arg = &misses;
	task = begin(&c, &seen);
	CHECK(rtsc_join(task) == 0);
	CHECK(misses.calls == 3 && misses.last_number == 2);
	CHECK(now_of(task).missed == 3);
	rtsc_close(app);
	close(fd);
}

static void work_thrice(struct rtsc_task *task, void *arg)
{
	struct rtsc_cycle cycle;

	(void)arg;
	for (int i = 0; i < 3; i++)
		CHECK(rtsc_wait(task, &cycle) && !cycle.timed_out);
}

static void a_periodic_task_has_the_call_too(void)
{
	struct misses misses = { 0 };
	struct rtsc_report report = { 0 };
	struct rtsc_config c = { .name = "periodic",
				 .period_ns = 1000000,
				 .deadline_ns = 1,
				 .on_miss = note_miss,
				 .miss_arg = &misses,
				 .stack_bytes = 1 << 20 };
	struct rtsc_task *task;

	CHECK(rtsc_open(&app, &small, &report) == 0);
	CHECK(rtsc_start(app, &c, work_thrice, NULL, &task, &report) == 0);
	rtsc_go(app);
	CHECK(rtsc_join(task) == 0);
	CHECK(misses.calls == 3 && now_of(task).missed == 3);
	rtsc_close(app);
}

int main(void)
{
	each_event_of_a_counter_is_a_cycle_or_is_counted();
	a_timer_of_the_kernel_wakes_it();
	a_socket_wakes_it_until_it_hangs_up();
	a_stop_ends_a_sleep_without_events();
	a_timeout_is_a_cycle_that_says_so();
	the_time_of_an_event_gives_a_latency();
	a_descriptor_that_is_not_open_is_named();
	each_miss_is_a_call_with_its_cycle();
	a_periodic_task_has_the_call_too();
	return 0;
}
