/* SPDX-License-Identifier: MIT */
/* Real threads on this machine: what they have is read back; no latency is asserted. */
#include "../rtscope_task.c"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define PERIOD_NS INT64_C(2000000)
#define CYCLES    20

static const struct rtsc_setup small = { .heap_bytes = RTSC_NONE,
					 .main_stack_bytes = RTSC_NONE,
					 .tasks = 4,
					 .unlocked = true };

struct seen {
	uint64_t cycles, last_number, skipped;
	int64_t first_ns;
	unsigned int policy;
	int priority;
};

static void count_cycles(struct rtsc_task *task, void *arg)
{
	struct seen *seen = (struct seen *)arg;
	struct sched_param param;
	struct rtsc_cycle cycle;

	/* the function's first instruction has the policy already: no window before */
	seen->policy = (unsigned int)syscall(SYS_sched_getscheduler, 0) & 0xff;
	syscall(SYS_sched_getparam, 0, &param);
	seen->priority = param.sched_priority;
	while (seen->cycles < CYCLES && rtsc_wait(task, &cycle)) {
		CHECK(cycle.wake_ns >= cycle.release_ns);
		if (seen->cycles++ == 0)
			seen->first_ns = cycle.release_ns;
		seen->last_number = cycle.number;
		seen->skipped += cycle.skipped;
		CHECK((cycle.release_ns - seen->first_ns) % PERIOD_NS == 0);
	}
}

static struct rtsc_config config(const char *name, enum rtsc_policy policy,
				 int priority)
{
	struct rtsc_config c = { .name = name,
				 .policy = policy,
				 .priority = priority,
				 .runtime_ns = PERIOD_NS / 10,
				 .period_ns = PERIOD_NS,
				 .stack_bytes = STACK_BYTES };

	return c;
}

static void check_sums(const struct rtsc_slot *s, const struct seen *seen)
{
	CHECK(s->cycles == seen->cycles && s->skipped == seen->skipped);
	CHECK(seen->last_number + 1 == seen->cycles + seen->skipped);
	CHECK(s->latency.count + s->latency.early + s->overruns == seen->cycles);
	CHECK(s->response.count == seen->cycles && s->execution.count == seen->cycles);
	CHECK(s->jitter.count == seen->cycles - 1);
	CHECK(s->missed <= s->cycles && s->in_cycle == 0);
	CHECK(s->latency.min_ns <= s->latency.max_ns);
	for (const struct rtsc_hist *h = &s->latency; h <= &s->jitter; h++) {
		uint64_t sum = h->overflow;

		for (unsigned int b = 0; b < RTSC_BUCKETS; b++)
			sum += h->bucket[b];
		CHECK(sum == h->count);
	}
}

#define STRIDE_BYTES 65536 /* no architecture has larger ones by default */

static void touch_a_page_in_each_cycle(struct rtsc_task *task, void *arg)
{
	volatile char *area = (volatile char *)arg;
	struct rtsc_cycle cycle;

	for (size_t i = 0; i < CYCLES && rtsc_wait(task, &cycle); i++)
		area[i * STRIDE_BYTES] = 1;
}

static void no_fault_is_missing_at_the_end(void)
{
	struct rtsc_config c = config("faulty", RTSC_POLICY_OTHER, 0);
	struct rtsc_report report = { 0 };
	struct rtsc_slot slot;
	struct rtsc_task *task;
	struct rtsc *app;
	void *area = mmap(NULL, CYCLES * STRIDE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(area != MAP_FAILED);
	/* a huge page would be one fault for all */
	madvise(area, CYCLES * STRIDE_BYTES, MADV_NOHUGEPAGE);
	CHECK(rtsc_open(&app, &small, &report) == 0);
	CHECK(rtsc_start(app, &c, touch_a_page_in_each_cycle, area, &task, &report) ==
	      0);
	rtsc_go(app);
	CHECK(rtsc_join(task) == 0);
	CHECK(rtsc_snapshot(rtsc_statistics(task), &slot));
	CHECK(slot.minor_faults >= CYCLES);
	CHECK(slot.voluntary_switches > 0);
	CHECK(slot.usage_cycle == slot.number && slot.last_fault_cycle == slot.number);
	rtsc_close(app);
	munmap(area, CYCLES * STRIDE_BYTES);
}

static void tasks_of_one_epoch_keep_their_offsets(void)
{
	static struct rtsc_slot slot;
	struct seen seen[2] = { { 0 }, { 0 } };
	struct rtsc_config c = config("a", RTSC_POLICY_OTHER, 0);
	struct rtsc_report report = { 0 };
	struct rtsc_task *task[2];
	struct rtsc *app;

	CHECK(rtsc_open(&app, &small, &report) == 0);
	CHECK(rtsc_start(app, &c, count_cycles, &seen[0], &task[0], &report) == 0);
	c.name = "b";
	c.offset_ns = PERIOD_NS / 4;
	CHECK(rtsc_start(app, &c, count_cycles, &seen[1], &task[1], &report) == 0);
	rtsc_go(app);
	for (int i = 0; i < 2; i++) {
		CHECK(rtsc_join(task[i]) == 0);
		CHECK(rtsc_snapshot(rtsc_statistics(task[i]), &slot));
		check_sums(&slot, &seen[i]);
		CHECK(slot.policy == RTSC_POLICY_OTHER);
	}
	/* on a busy machine one may begin some releases later */
	CHECK((seen[1].first_ns - seen[0].first_ns) % PERIOD_NS == PERIOD_NS / 4 ||
	      (seen[0].first_ns - seen[1].first_ns) % PERIOD_NS == PERIOD_NS / 4 * 3);
	rtsc_close(app);
}

/* False where this machine refuses; then the report has the cause. */
static bool runs_with(enum rtsc_policy policy, int priority)
{
	struct seen seen = { 0 };
	struct rtsc_config c = config("rt", policy, priority);
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	struct rtsc *app;
	int err;

	CHECK(rtsc_open(&app, &small, &report) == 0);
	err = rtsc_start(app, &c, count_cycles, &seen, &task, &report);
	if (err) {
		CHECK(report.lacks == 1 && report.lack[0].err == -err);
		CHECK(report.lack[0].cause != RTSC_CAUSE_SYSTEM || err == -ENOSYS);
		rtsc_report_print(&report, STDOUT_FILENO);
	} else {
		const struct rtsc_slot *s = rtsc_statistics(task);

		rtsc_go(app);
		CHECK(rtsc_join(task) == 0);
		CHECK(seen.policy == (unsigned int)policy && seen.priority == priority);
		CHECK(s->policy == (uint64_t)policy);
		CHECK(s->priority == (uint64_t)priority);
		if (policy == RTSC_POLICY_DEADLINE)
			CHECK(s->runtime_ns == (uint64_t)PERIOD_NS / 10 &&
			      s->dl_deadline_ns == (uint64_t)PERIOD_NS &&
			      s->dl_period_ns == (uint64_t)PERIOD_NS);
	}
	rtsc_close(app);
	return err == 0;
}

static void each_policy_is_had_or_its_refusal_is_explained(void)
{
	CHECK(runs_with(RTSC_POLICY_OTHER, 0));
	runs_with(RTSC_POLICY_FIFO, 7);
	runs_with(RTSC_POLICY_RR, 3);
	runs_with(RTSC_POLICY_DEADLINE, 0);
}

static void once(struct rtsc_task *task, void *arg)
{
	struct rtsc_cycle cycle;

	CHECK(!rtsc_wait(task, &cycle));
	*(bool *)arg = true;
}

static void a_task_without_a_period_runs_once(void)
{
	struct rtsc_config c = config("once", RTSC_POLICY_OTHER, 0);
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	struct rtsc *app;
	bool ran = false;

	c.period_ns = 0;
	CHECK(rtsc_open(&app, &small, &report) == 0);
	CHECK(rtsc_start(app, &c, once, &ran, &task, &report) == 0);
	CHECK(rtsc_join(task) == 0 && ran);
	CHECK(rtsc_statistics(task)->state == RTSC_STATE_ENDED);
	rtsc_close(app);
}

static void forever(struct rtsc_task *task, void *arg)
{
	struct rtsc_cycle cycle;

	while (rtsc_wait(task, &cycle))
		__atomic_store_n((uint64_t *)arg, cycle.number + 1, __ATOMIC_RELAXED);
}

/* It has no cycle any more. */
static void close_ends_a_task_that_waits_for_the_epoch(void)
{
	struct rtsc_config c = config("ever", RTSC_POLICY_OTHER, 0);
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	uint64_t cycles = 0;
	struct rtsc *app;

	CHECK(rtsc_open(&app, &small, &report) == 0);
	CHECK(rtsc_start(app, &c, forever, &cycles, &task, &report) == 0);
	rtsc_close(app);
	CHECK(cycles == 0);
}

static void the_mutex_knows_its_owner(void)
{
	struct rtsc_mutex mutex;

	CHECK(rtsc_mutex_init(&mutex) == 0);
#ifndef __SANITIZE_THREAD__ /* which reports the mistake itself */
	CHECK(rtsc_mutex_unlock(&mutex) == -EPERM);
#endif
	CHECK(rtsc_mutex_lock(&mutex) == 0);
	CHECK(rtsc_mutex_lock(&mutex) == -EDEADLK);
	CHECK(rtsc_mutex_trylock(&mutex) < 0); /* EBUSY; of glibc EDEADLK */
	CHECK(rtsc_mutex_unlock(&mutex) == 0);
	rtsc_mutex_destroy(&mutex);
}

static struct rtsc_mutex shared;

static void lock_it(struct rtsc_task *task, void *arg)
{
	(void)task;
	(void)arg;
	CHECK(rtsc_mutex_lock(&shared) == 0);
	CHECK(rtsc_mutex_unlock(&shared) == 0);
}

/* Field 18 of stat: -1 - priority of a real-time thread, boosted ones too. */
static int effective_priority(void)
{
	char text[512], *at;
	FILE *f = fopen("/proc/thread-self/stat", "r");
	int value = 0;

	CHECK(f && fgets(text, sizeof(text), f) && fclose(f) == 0);
	at = strrchr(text, ')') + 2;
	for (int field = 3; field < 18; field++)
		at = strchr(at, ' ') + 1;
	value = atoi(at);
	return value;
}

static void who_holds_the_mutex_has_the_priority_of_who_waits(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct rtsc_config c = config("high", RTSC_POLICY_FIFO, 9);
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	struct rtsc *app;
	int tries = 0;

	c.period_ns = 0;
	CHECK(rtsc_mutex_init(&shared) == 0);
	CHECK(rtsc_open(&app, &small, &report) == 0);
	CHECK(rtsc_mutex_lock(&shared) == 0);
	if (rtsc_start(app, &c, lock_it, NULL, &task, &report) == 0) {
		while (effective_priority() != -1 - 9 && tries++ < 10000)
			nanosleep(&pause, NULL);
		CHECK(tries < 10000);
	}
	CHECK(rtsc_mutex_unlock(&shared) == 0);
	rtsc_close(app);
	CHECK(effective_priority() >= 0);
	rtsc_mutex_destroy(&shared);
}

int main(int argc, char **argv)
{
	(void)argv;
	tasks_of_one_epoch_keep_their_offsets();
	a_task_without_a_period_runs_once();
	close_ends_a_task_that_waits_for_the_epoch();
	the_mutex_knows_its_owner();
	if (argc > 1) /* an emulator */
		return 0;
	no_fault_is_missing_at_the_end();
	each_policy_is_had_or_its_refusal_is_explained();
	who_holds_the_mutex_has_the_priority_of_who_waits();
	return 0;
}
