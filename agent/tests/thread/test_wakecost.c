/* SPDX-License-Identifier: MIT */
/* How late a thread wakes, alone and beside another: what is measured leaves nothing. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"
#include "thread/policy.h"
#include "thread/wakecost.h"

static int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int count = 0;

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		count += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return count;
}

/* A thread that was joined leaves /proc a moment later, with qemu-user a long one. */
static bool are_soon_at_most(int count)
{
	for (int i = 0; i < 10000 && threads() > count; i++)
		usleep(1000);
	return threads() <= count;
}

static void what_is_measured_leaves_the_thread_as_it_was(void)
{
	struct wakecost cost;
	struct policy policy;
	cpu_set_t before, after;
	int first;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	wakecost_begin(getpid());
	wakecost_measure();
	first = threads(); /* a sanitizer and qemu-user have one of their own */
	cost = wakecost_measure();
	wakecost_end();
	CHECK(cost.alone_ns > 0);
	CHECK(cost.beside_ns >= 0); /* 0 where others took all CPUs */
	CHECK(are_soon_at_most(first));
	CHECK(sched_getaffinity(0, sizeof(after), &after) == 0);
	CHECK(CPU_EQUAL(&before, &after));
	CHECK(policy_get(&policy) == 0);
	CHECK(policy.kind == POLICY_OTHER);
}

static int last_of(const cpu_set_t *cpus)
{
	int last = 0;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, cpus))
			last = cpu;
	return last;
}

/* As a program that leaves the thread no time: its end is at home. */
static void it_is_measured_where_the_program_runs(void)
{
	cpu_set_t before, one, there, after;
	pid_t child;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	CPU_ZERO(&one);
	CPU_SET(last_of(&before), &one);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	CHECK(sched_setaffinity(child, sizeof(one), &one) == 0);
	wakecost_begin(child);
	CHECK(sched_getaffinity(0, sizeof(there), &there) == 0);
	CHECK(CPU_EQUAL(&there, &one));
	for (int i = 0; i < 100 && !CPU_EQUAL(&there, &before); i++) {
		usleep(100000);
		CHECK(sched_getaffinity(0, sizeof(there), &there) == 0);
	}
	CHECK(CPU_EQUAL(&there, &before)); /* it took too long */
	wakecost_end();
	CHECK(sched_getaffinity(0, sizeof(after), &after) == 0);
	CHECK(CPU_EQUAL(&after, &before));
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
}

static void a_process_that_is_gone_moves_nobody(void)
{
	cpu_set_t before, after;

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	wakecost_begin(0x7ffffff0);
	CHECK(sched_getaffinity(0, sizeof(after), &after) == 0);
	CHECK(CPU_EQUAL(&after, &before));
	wakecost_end();
}

int main(void)
{
	it_is_measured_where_the_program_runs();
	a_process_that_is_gone_moves_nobody();
	what_is_measured_leaves_the_thread_as_it_was();
	return 0;
}
