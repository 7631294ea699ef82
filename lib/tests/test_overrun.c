/* SPDX-License-Identifier: MIT */
/* The four overrun policies on a fake clock: each number is exact. */
#define RTSC_TEST
#include "../rtscope_task.c"

#include "check.h"

#define PERIOD_NS  100
#define MAX_CYCLES 16

static int64_t fake_ns;
static int64_t interrupted_at_ns; /* a signal ends the first sleep that spans it */

static int64_t fake_now(void)
{
	return fake_ns;
}

static int fake_sleep(int64_t until_ns)
{
	if (interrupted_at_ns > fake_ns && interrupted_at_ns < until_ns) {
		fake_ns = interrupted_at_ns;
		return EINTR;
	}
	if (fake_ns < until_ns)
		fake_ns = until_ns;
	return 0;
}

struct story {
	const int64_t *work_ns; /* of each cycle */
	size_t cycles;
	size_t seen;
	struct rtsc_cycle cycle[MAX_CYCLES];
	bool ended; /* rtsc_wait() said so before the cycles were over */
};

static void act(struct rtsc_task *task, void *arg)
{
	struct story *s = (struct story *)arg;

	while (s->seen < s->cycles) {
		if (!rtsc_wait(task, &s->cycle[s->seen])) {
			s->ended = true;
			return;
		}
		fake_ns += s->work_ns[s->seen++];
	}
}

struct outcome {
	int64_t epoch_ns;
	int joined;
	struct rtsc_slot slot;
};

static struct outcome play(struct story *s, const struct rtsc_config *config)
{
	static struct rtsc_slot copy;
	struct rtsc_setup setup = { .heap_bytes = RTSC_NONE,
				    .main_stack_bytes = RTSC_NONE,
				    .tasks = 1,
				    .unlocked = true,
				    .private_statistics = true };
	struct rtsc_config c = *config;
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	struct outcome o;
	struct rtsc *app;

	fake_ns = 1000;
	seam.now_ns = fake_now;
	seam.cpu_ns = fake_now;
	seam.sleep_until = fake_sleep;
	c.stack_bytes = STACK_BYTES;
	CHECK(rtsc_open(&app, &setup, &report) == 0 && report.lacks == 0);
	CHECK(rtsc_start(app, &c, act, s, &task, &report) == 0 && report.lacks == 0);
	rtsc_go(app);
	o.joined = rtsc_join(task);
	CHECK(rtsc_snapshot(rtsc_statistics(task), &copy));
	o.slot = copy;
	o.epoch_ns = (int64_t)app->page->epoch_ns;
	rtsc_close(app);
	return o;
}

static const int64_t one_long[] = { 30, 250, 30, 30, 30, 30 };

static struct rtsc_config with(enum rtsc_overrun overrun)
{
	struct rtsc_config c = { .name = "t",
				 .period_ns = PERIOD_NS,
				 .overrun = overrun };

	return c;
}

static void expect(const struct story *s, const struct outcome *o,
		   const int64_t *number, const int64_t *release_ns,
		   const int64_t *wake_ns)
{
	for (size_t i = 0; i < s->seen; i++) {
		CHECK(s->cycle[i].number == (uint64_t)number[i]);
		CHECK(s->cycle[i].release_ns - o->epoch_ns == release_ns[i]);
		CHECK(s->cycle[i].wake_ns - o->epoch_ns == wake_ns[i]);
	}
	CHECK(o->slot.latency.count + o->slot.latency.early + o->slot.overruns ==
	      s->seen);
	CHECK(o->slot.cycles == s->seen);
	CHECK(o->slot.response.count == s->seen);
	CHECK(o->slot.execution.count == s->seen);
	CHECK(o->slot.jitter.count == s->seen - 1);
}

static void skip_leaves_past_releases_out_and_keeps_the_grid(void)
{
	struct story s = { .work_ns = one_long, .cycles = 5 };
	struct rtsc_config c = with(RTSC_OVERRUN_SKIP);
	struct outcome o = play(&s, &c);
	static const int64_t number[] = { 0, 1, 4, 5, 6 };
	static const int64_t at_ns[] = { 0, 100, 400, 500, 600 };

	expect(&s, &o, number, at_ns, at_ns);
	CHECK(s.cycle[2].skipped == 2 && s.cycle[2].late);
	CHECK(s.cycle[3].skipped == 0 && !s.cycle[3].late);
	CHECK(o.slot.skipped == 2 && o.slot.overruns == 0 && o.slot.missed == 1);
	CHECK(o.joined == 0 && o.slot.state == RTSC_STATE_ENDED);
}

static void catch_up_runs_past_releases_at_once_and_keeps_the_grid(void)
{
	struct story s = { .work_ns = one_long, .cycles = 6 };
	struct rtsc_config c = with(RTSC_OVERRUN_CATCH_UP);
	struct outcome o = play(&s, &c);
	static const int64_t number[] = { 0, 1, 2, 3, 4, 5 };
	static const int64_t release_ns[] = { 0, 100, 200, 300, 400, 500 };
	static const int64_t wake_ns[] = { 0, 100, 350, 380, 410, 500 };

	expect(&s, &o, number, release_ns, wake_ns);
	CHECK(o.slot.overruns == 3 && o.slot.skipped == 0);
	/* ended 250, 180, 110 after their releases; then 40 */
	CHECK(o.slot.missed == 3 && s.cycle[4].late && !s.cycle[5].late);
	CHECK(o.slot.response.max_ns == 250 && o.slot.latency.max_ns == 0);
	/* starts 250 apart where releases are 100 apart */
	CHECK(o.slot.jitter.max_ns == 150);
}

static void rebase_begins_a_new_grid_at_the_late_start(void)
{
	struct story s = { .work_ns = one_long, .cycles = 4 };
	struct rtsc_config c = with(RTSC_OVERRUN_REBASE);
	struct outcome o = play(&s, &c);
	static const int64_t number[] = { 0, 1, 2, 3 };
	static const int64_t at_ns[] = { 0, 100, 350, 450 };

	expect(&s, &o, number, at_ns, at_ns);
	CHECK(o.slot.overruns == 1 && o.slot.skipped == 0 && o.slot.missed == 1);
}

static void stop_ends_the_task_and_says_so(void)
{
	struct story s = { .work_ns = one_long, .cycles = 4 };
	struct rtsc_config c = with(RTSC_OVERRUN_STOP);
	struct outcome o = play(&s, &c);
	static const int64_t number[] = { 0, 1 };
	static const int64_t at_ns[] = { 0, 100 };

	CHECK(s.ended && s.seen == 2);
	expect(&s, &o, number, at_ns, at_ns);
	CHECK(o.joined == -ETIME && o.slot.state == RTSC_STATE_OVERRAN);
}

static void a_cycle_that_ends_with_the_next_release_is_no_overrun(void)
{
	static const int64_t work_ns[] = { 100, 100, 200, 10 };
	static const int64_t number[] = { 0, 1, 2, 4 };
	static const int64_t at_ns[] = { 0, 100, 200, 400 };
	struct story s = { .work_ns = work_ns, .cycles = 4 };
	struct rtsc_config c = with(RTSC_OVERRUN_SKIP);
	struct outcome o = play(&s, &c);

	expect(&s, &o, number, at_ns, at_ns);
	CHECK(s.cycle[3].skipped == 1 && o.slot.missed == 1);

	s = (struct story){ .work_ns = work_ns, .cycles = 3 };
	c = with(RTSC_OVERRUN_STOP);
	o = play(&s, &c);
	CHECK(!s.ended && s.seen == 3);
}

static void a_deadline_before_the_period_is_missed_without_an_overrun(void)
{
	static const int64_t work_ns[] = { 60, 61, 10 };
	struct story s = { .work_ns = work_ns, .cycles = 3 };
	struct rtsc_config c = with(RTSC_OVERRUN_STOP);
	struct outcome o;

	c.deadline_ns = 60;
	o = play(&s, &c);
	CHECK(s.seen == 3 && o.slot.missed == 1 && o.slot.overruns == 0);
	CHECK(!s.cycle[1].late && s.cycle[2].late);
	CHECK(o.slot.deadline_ns == 60);
}

static void an_offset_moves_the_releases_from_the_epoch(void)
{
	static const int64_t at_ns[] = { 40, 140, 240 }, number[] = { 0, 1, 2 };
	struct story s = { .work_ns = one_long + 2, .cycles = 3 };
	struct rtsc_config c = with(RTSC_OVERRUN_SKIP);
	struct outcome o;

	c.offset_ns = 40;
	o = play(&s, &c);
	expect(&s, &o, number, at_ns, at_ns);
}

static void a_signal_does_not_end_a_sleep(void)
{
	struct story s = { .work_ns = one_long + 2, .cycles = 3 };
	struct rtsc_config c = with(RTSC_OVERRUN_SKIP);
	struct outcome o;

	interrupted_at_ns = 1000 + LEAD_NS + 150;
	o = play(&s, &c);
	interrupted_at_ns = 0;
	CHECK(s.seen == 3 && o.slot.latency.max_ns == 0 && o.slot.latency.early == 0);
}

static void a_task_that_comes_later_begins_with_the_next_release_of_the_grid(void)
{
	struct rtsc_setup setup = { .heap_bytes = RTSC_NONE,
				    .main_stack_bytes = RTSC_NONE,
				    .unlocked = true,
				    .private_statistics = true };
	struct story s = { .work_ns = one_long, .cycles = 1 };
	struct rtsc_config c = with(RTSC_OVERRUN_STOP);
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	struct rtsc *app;

	fake_ns = 1000;
	c.stack_bytes = STACK_BYTES;
	CHECK(rtsc_open(&app, &setup, &report) == 0);
	rtsc_go(app);
	fake_ns += LEAD_NS + 1050;
	CHECK(rtsc_start(app, &c, act, &s, &task, &report) == 0);
	CHECK(rtsc_join(task) == 0);
	CHECK(s.seen == 1 && s.cycle[0].number == 0);
	CHECK(s.cycle[0].release_ns == 1000 + LEAD_NS + 1100);
	rtsc_close(app);
}

int main(void)
{
	skip_leaves_past_releases_out_and_keeps_the_grid();
	catch_up_runs_past_releases_at_once_and_keeps_the_grid();
	rebase_begins_a_new_grid_at_the_late_start();
	stop_ends_the_task_and_says_so();
	a_cycle_that_ends_with_the_next_release_is_no_overrun();
	a_deadline_before_the_period_is_missed_without_an_overrun();
	an_offset_moves_the_releases_from_the_epoch();
	a_signal_does_not_end_a_sleep();
	a_task_that_comes_later_begins_with_the_next_release_of_the_grid();
	return 0;
}
