/* SPDX-License-Identifier: MIT */
/* How late a thread wakes, alone and beside another: what is measured leaves nothing. */
#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
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
	wakecost_begin();
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

int main(void)
{
	what_is_measured_leaves_the_thread_as_it_was();
	return 0;
}
