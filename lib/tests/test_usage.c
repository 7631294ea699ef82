/* SPDX-License-Identifier: MIT */
/* Faults and switches on a fake clock: when they are counted, and for which cycles. */
#define RTSC_TEST
#include "../rtscope_task.c"

#include "check.h"

#define MS        INT64_C(1000000)
#define PERIOD_NS (10 * MS)
#define CYCLES    60
#define EACH      (LOOK_NS / PERIOD_NS) /* cycles from one look to the next */
#define NEVER     UINT64_MAX

static int64_t fake_ns, worked_ns;
static struct rtsc_usage had;
static int looks;

static int64_t fake_now(void)
{
	return fake_ns;
}

static int64_t fake_cpu(void)
{
	return worked_ns;
}

static int fake_usage(struct rtsc_usage *out)
{
	looks++;
	*out = had;
	return 0;
}

static int fake_sleep(int64_t until_ns)
{
	had.voluntary_switches++;
	if (fake_ns < until_ns)
		fake_ns = until_ns;
	return 0;
}

/* What happens in a cycle: faults, and more work than in the others. */
struct event {
	uint64_t cycle, minor, major;
	int64_t work_ns;
};

struct story {
	const struct event *event;
	size_t events;
	uint64_t cycles;
	bool stops;                  /* with rtsc_stop(), and else by a return */
	struct rtsc_slot *after;     /* as it is in the cycle that follows each one */
	int looks[CYCLES + 1];       /* before the end of each */
	uint64_t faults[CYCLES + 1]; /* that the task has had by then */
	int64_t oldest_ns;           /* the longest that the counts were behind */
};

static void act(struct rtsc_task *task, void *arg)
{
	struct story *s = (struct story *)arg;
	struct rtsc_cycle cycle;

	while (rtsc_wait(task, &cycle)) {
		uint64_t n = cycle.number;
		int64_t work_ns = MS;

		CHECK(rtsc_snapshot(rtsc_statistics(task), &s->after[n]));
		s->looks[n] = looks;
		if (n > 0 &&
		    cycle.wake_ns - (int64_t)s->after[n].usage_ns > s->oldest_ns)
			s->oldest_ns = cycle.wake_ns - (int64_t)s->after[n].usage_ns;
		for (size_t i = 0; i < s->events; i++)
			if (s->event[i].cycle == n) {
				had.minor_faults += s->event[i].minor;
				had.major_faults += s->event[i].major;
				work_ns += s->event[i].work_ns;
			}
		fake_ns += work_ns;
		worked_ns += work_ns;
		s->faults[n] = had.minor_faults + had.major_faults;
		if (n + 1 == s->cycles && !s->stops)
			return;
		if (n + 1 == s->cycles)
			rtsc_stop(task);
	}
}

static struct rtsc_slot at[CYCLES + 1], last;

/* The statistics at the end; those of each cycle are in at[]. */
static struct rtsc_slot *play(struct story *s)
{
	struct rtsc_setup setup = { .heap_bytes = RTSC_NONE,
				    .main_stack_bytes = RTSC_NONE,
				    .tasks = 1,
				    .unlocked = true,
				    .private_statistics = true };
	struct rtsc_config c = { .name = "t",
				 .period_ns = PERIOD_NS,
				 .stack_bytes = STACK_BYTES };
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	struct rtsc *app;

	fake_ns = 1000;
	looks = 0;
	/* what it had before is not its cycles' */
	had = (struct rtsc_usage){ 100, 10, 1000, 500 };
	memset(at, 0, sizeof(at));
	s->after = at;
	s->cycles = s->cycles ? s->cycles : CYCLES;
	seam.now_ns = fake_now;
	seam.cpu_ns = fake_cpu;
	seam.usage = fake_usage;
	seam.sleep_until = fake_sleep;
	CHECK(rtsc_open(&app, &setup, &report) == 0 && report.lacks == 0);
	CHECK(rtsc_start(app, &c, act, s, &task, &report) == 0 && report.lacks == 0);
	rtsc_go(app);
	CHECK(rtsc_join(task) == 0);
	CHECK(rtsc_snapshot(rtsc_statistics(task), &last));
	rtsc_close(app);
	/* whatever happened: nothing is missing at the end, and nothing was old before */
	CHECK(last.minor_faults == had.minor_faults - 100);
	CHECK(last.major_faults == had.major_faults - 10);
	CHECK(last.voluntary_switches == had.voluntary_switches - 1000);
	CHECK(last.number + 1 == s->cycles && last.usage_cycle == last.number);
	CHECK(s->oldest_ns <= LOOK_NS + PERIOD_NS);
	return &last;
}

/* Whether the end of a cycle had a look. */
static bool looked(const struct story *s, uint64_t cycle)
{
	return s->looks[cycle + 1] > s->looks[cycle];
}

static void a_quiet_task_is_looked_at_ten_times_a_second(void)
{
	struct story s = { .cycles = CYCLES };
	struct rtsc_slot *end = play(&s);

	/* its first cycle is the longest so far */
	CHECK(looked(&s, 0) && at[1].usage_cycle == 0);
	for (uint64_t n = 1; n + 1 < CYCLES; n++)
		CHECK(looked(&s, n) == (n % EACH == 0));
	CHECK(at[EACH].usage_cycle == 0 && at[EACH + 1].usage_cycle == EACH);
	CHECK(end->last_fault_cycle == NEVER && end->minor_faults == 0);
}

static void counts_say_for_which_cycles_they_are_true(void)
{
	static const struct event event[] = { { .cycle = 14, .minor = 3 },
					      { .cycle = 15, .major = 1 },
					      { .cycle = 40, .minor = 2 } };
	struct story s = { .event = event, .events = 3 };

	play(&s);
	for (uint64_t n = 1; n < CYCLES; n++) {
		uint64_t counted = at[n].minor_faults + at[n].major_faults;

		CHECK(at[n].usage_cycle < n);
		CHECK(counted == s.faults[at[n].usage_cycle] - 110);
	}
}

static void a_fault_in_a_cycle_like_the_others_has_a_range_of_cycles(void)
{
	static const struct event event[] = { { .cycle = 14, .minor = 1 } };
	struct story s = { .event = event, .events = 1 };

	play(&s);
	CHECK(at[20].last_fault_cycle == NEVER && at[20].usage_cycle == 10);
	CHECK(at[21].last_fault_cycle == 20 && at[21].fault_since_cycle == 11);
	CHECK(last.last_fault_cycle == 20 && last.fault_since_cycle == 11);
}

static void after_a_fault_each_cycle_is_looked_at_and_the_next_has_its_number(void)
{
	static const struct event event[] = { { .cycle = 14, .minor = 1 },
					      { .cycle = 24, .minor = 1 } };
	struct story s = { .event = event, .events = 2 };

	play(&s);
	CHECK(at[21].last_fault_cycle == 20 && at[21].fault_since_cycle == 11);
	for (uint64_t n = 20; n < 24 + EACH; n++)
		CHECK(looked(&s, n));
	CHECK(at[25].last_fault_cycle == 24 && at[25].fault_since_cycle == 24);
	/* and then it is quiet again */
	CHECK(looked(&s, 24 + EACH) && !looked(&s, 25 + EACH));
	CHECK(last.last_fault_cycle == 24 && last.fault_since_cycle == 24);
}

static void the_longest_cycle_so_far_is_looked_at(void)
{
	static const struct event event[] = {
		{ .cycle = 13, .work_ns = MS },
		{ .cycle = 14, .minor = 5, .work_ns = 2 * MS },
		{ .cycle = 17, .work_ns = MS }
	};
	struct story s = { .event = event, .events = 3 };

	play(&s);
	CHECK(looked(&s, 13) && looked(&s, 14));
	CHECK(at[15].minor_faults == 5);
	CHECK(at[15].last_fault_cycle == 14 && at[15].fault_since_cycle == 14);
}

static void a_late_cycle_is_looked_at_however_long_others_were(void)
{
	static const struct event event[] = { { .cycle = 3, .work_ns = 50 * MS },
					      { .cycle = 23, .work_ns = 20 * MS },
					      { .cycle = 26, .work_ns = 2 * MS } };
	struct story s = { .event = event, .events = 3 };

	play(&s);
	CHECK(last.missed == 2 && last.response.max_ns == (uint64_t)(51 * MS));
	CHECK(at[26].usage_cycle == 23);
	CHECK(s.looks[26] > s.looks[23] && !looked(&s, 26));
}

static void a_task_that_is_stopped_has_a_last_look(void)
{
	static const struct event event[] = { { .cycle = 34, .minor = 7 } };
	struct story s = { .event = event, .events = 1, .cycles = 35, .stops = true };

	play(&s);
	CHECK(at[34].minor_faults == 0);
	CHECK(last.minor_faults == 7 && last.usage_cycle == 34);
	CHECK(last.last_fault_cycle == 34 && last.fault_since_cycle == 31);
}

int main(void)
{
	a_quiet_task_is_looked_at_ten_times_a_second();
	counts_say_for_which_cycles_they_are_true();
	a_fault_in_a_cycle_like_the_others_has_a_range_of_cycles();
	after_a_fault_each_cycle_is_looked_at_and_the_next_has_its_number();
	the_longest_cycle_so_far_is_looked_at();
	a_late_cycle_is_looked_at_however_long_others_were();
	a_task_that_is_stopped_has_a_last_look();
	return 0;
}
