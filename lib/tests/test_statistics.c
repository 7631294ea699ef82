/* SPDX-License-Identifier: MIT */
/* The page of statistics: its buckets, its layout, a reader beside a writer, a crash. */
#define RTSC_TEST
#include "../rtscope_task.c"

#include <signal.h>
#include <sys/wait.h>

#include "check.h"

static struct rtsc_slot slot, copy;

static const struct rtsc_setup small = { .heap_bytes = RTSC_NONE,
					 .main_stack_bytes = RTSC_NONE,
					 .tasks = 2,
					 .unlocked = true };

static void each_bucket_begins_where_the_one_before_ends(void)
{
	for (unsigned int b = 0; b + 1 < RTSC_BUCKETS; b++) {
		uint64_t low = rtsc_bucket_low_ns(b), next = rtsc_bucket_low_ns(b + 1);

		CHECK(bucket_of(low) == b && bucket_of(next - 1) == b);
		CHECK(next - low == 1 || (next - low) * 16 <= low);
	}
	CHECK(rtsc_bucket_low_ns(RTSC_BUCKETS) == UINT64_C(1) << RTSC_MAX_BITS);
}

static void values_without_a_bucket_are_counted(void)
{
	struct rtsc_hist *h = &slot.latency;

	hist_init(h);
	hist_add(h, -1);
	hist_add(h, 7);
	hist_add(h, (INT64_C(1) << RTSC_MAX_BITS) - 1);
	hist_add(h, INT64_C(1) << RTSC_MAX_BITS);
	CHECK(h->early == 1 && h->overflow == 1 && h->count == 3);
	CHECK(h->bucket[7] == 1 && h->bucket[RTSC_BUCKETS - 1] == 1);
	CHECK(h->min_ns == 7 && h->max_ns == UINT64_C(1) << RTSC_MAX_BITS);
}

static void a_sum_carries(void)
{
	struct rtsc_hist *h = &slot.response;

	for (int i = 0; i < 5; i++)
		hist_add(h, INT64_C(1) << 62);
	/* 5 * 2^62 = 2^64 + 2^62 */
	CHECK(h->sum_high == 1 && h->sum_ns == UINT64_C(1) << 62);
}

/* As the reader in Python has them: a change of the layout is a new RTSC_LAYOUT. */
static void the_layout_is_that_of_version_1(void)
{
	CHECK(RTSC_LAYOUT == 1);
	CHECK(offsetof(struct rtsc_page, program) == 128);
	CHECK(offsetof(struct rtsc_slot, cycles) == 12 * 8);
	CHECK(offsetof(struct rtsc_slot, in_cycle) == 24 * 8);
	CHECK(offsetof(struct rtsc_slot, name) == 25 * 8);
	CHECK(offsetof(struct rtsc_slot, latency) == 32 * 8);
	CHECK(sizeof(struct rtsc_hist) == 504 * 8);
}

static uint32_t halt;

static void *write_on(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&halt, __ATOMIC_RELAXED)) {
		begin_write(&slot);
		add(&slot.cycles, 1);
		add(&slot.missed, 1);
		hist_add(&slot.jitter, 5);
		end_write(&slot);
	}
	return NULL;
}

static void a_copy_is_of_one_time(void)
{
	pthread_t thread;
	int copies = 0;

	memset(&slot, 0, sizeof(slot));
	CHECK(pthread_create(&thread, NULL, write_on, NULL) == 0);
	for (int i = 0; i < 300; i++) {
		if (!rtsc_snapshot(&slot, &copy))
			continue;
		copies++;
		CHECK(copy.cycles == copy.missed);
		CHECK(copy.cycles == copy.jitter.count);
		CHECK(copy.cycles == copy.jitter.bucket[5]);
	}
	__atomic_store_n(&halt, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CHECK(rtsc_snapshot(&slot, &copy) && copy.cycles == slot.cycles);
	CHECK(copies >= 0); /* a writer that never rests may leave a reader nothing */
}

static void a_torn_slot_is_no_copy(void)
{
	begin_write(&slot);
	CHECK(!rtsc_snapshot(&slot, &copy));
	end_write(&slot);
	CHECK(rtsc_snapshot(&slot, &copy));
}

static void five_cycles_and_then(struct rtsc_task *task, void *arg)
{
	struct rtsc_cycle cycle;

	while (rtsc_wait(task, &cycle))
		if (cycle.number >= 4) {
			if (arg)
				raise(SIGKILL);
			return;
		}
}

static int run(bool crash)
{
	struct rtsc_config c = { .name = "a task with a long name, which is cut here",
				 .period_ns = 1000000,
				 .overrun = RTSC_OVERRUN_CATCH_UP,
				 .stack_bytes = STACK_BYTES };
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	struct rtsc *app;

	if (rtsc_open(&app, &small, &report) || report.lacks ||
	    rtsc_start(app, &c, five_cycles_and_then, crash ? app : NULL, &task,
		       &report))
		return 1;
	rtsc_go(app);
	rtsc_join(task);
	if (access(app->path, R_OK) < 0)
		return 1;
	rtsc_close(app);
	return 0;
}

static pid_t run_in_child(bool crash, char *path, int *status)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(run(crash));
	CHECK(waitpid(pid, status, 0) == pid);
	snprintf(path, 128, RTSC_DIR "/" RTSC_PREFIX "%d", (int)pid);
	return pid;
}

static void statistics_survive_a_crash(void)
{
	char path[128];
	int status, fd;
	pid_t pid = run_in_child(true, path, &status);
	struct rtsc_page page;

	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	CHECK(read(fd, &page, sizeof(page)) == sizeof(page));
	CHECK(memcmp(&page.magic, "rtsctask", 8) == 0 || page.magic == RTSC_MAGIC);
	CHECK(page.layout == 1 && page.pid == (uint64_t)pid && page.closed == 0);
	CHECK(page.slots == 2 && page.slot_bytes == sizeof(copy));
	CHECK(read(fd, &copy, sizeof(copy)) == sizeof(copy));
	CHECK(copy.cycles == 4 && copy.number == 4 && copy.in_cycle == 1);
	CHECK(copy.state == RTSC_STATE_RUNNING && copy.sequence % 2 == 0);
	CHECK(strcmp(copy.name, "a task with a long name, which ") == 0);
	CHECK(copy.latency.count + copy.latency.early + copy.overruns == 5);
	/* the first cycle is the longest so far, so that it has been looked at */
	CHECK(copy.usage_cycle < 4 && copy.usage_ns < copy.wake_ns);
	/* nobody has it locked any more */
	CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0);
	close(fd);
	unlink(path);
}

static void statistics_go_with_a_program_that_ends(void)
{
	char path[128];
	int status;

	run_in_child(false, path, &status);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(access(path, F_OK) < 0 && errno == ENOENT);
}

static void a_file_that_a_crash_has_left_is_replaced_and_a_living_ones_is_not(void)
{
	struct rtsc_report report = { 0 };
	struct rtsc *app, *second;
	char path[128];
	int old;

	snprintf(path, sizeof(path), RTSC_DIR "/" RTSC_PREFIX "%d", (int)getpid());
	old = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(old >= 0);
	close(old);
	CHECK(rtsc_open(&app, &small, &report) == 0 && report.lacks == 0);

	CHECK(rtsc_open(&second, &small, &report) == 0 && report.lacks == 1);
	CHECK(report.lack[0].err == EBUSY && second->path[0] == '\0');
	rtsc_close(second);
	CHECK(access(path, R_OK) == 0);
	rtsc_close(app);
	CHECK(access(path, F_OK) < 0);
}

int main(void)
{
	each_bucket_begins_where_the_one_before_ends();
	values_without_a_bucket_are_counted();
	a_sum_carries();
	the_layout_is_that_of_version_1();
	a_copy_is_of_one_time();
	a_torn_slot_is_no_copy();
	statistics_survive_a_crash();
	statistics_go_with_a_program_that_ends();
	a_file_that_a_crash_has_left_is_replaced_and_a_living_ones_is_not();
	return 0;
}
