// SPDX-License-Identifier: MIT
/*
 * deadline self: a program that makes itself SCHED_DEADLINE while it runs on the second
 * CPU, and computes. deadline other: it does that to another program that computes.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static void may_run_on(pid_t pid, unsigned long mask)
{
	syscall(SYS_sched_setaffinity, pid, sizeof(mask), &mask);
}

static void become(pid_t pid, int policy, long runtime_us, long period_us)
{
	struct attr attr = { .size = sizeof(attr), .policy = policy };

	if (policy == 6) {
		attr.runtime = runtime_us * 1000;
		attr.deadline = attr.period = period_us * 1000;
	}
	if (syscall(SYS_sched_setattr, pid, &attr, 0))
		perror("sched_setattr");
}

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static void compute(long us)
{
	int64_t until = now_us() + us;

	while (now_us() < until)
		;
}

int main(int argc, char **argv)
{
	pid_t child;

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "self")) {
		prctl(PR_SET_NAME, "dlself");
		usleep(300000);
		for (int i = 0; i < 3; i++) {
			may_run_on(0, 2);
			may_run_on(0, 3);
			become(0, 6, 3000, 30000);
			compute(1200);
			become(0, 0, 0, 0);
			usleep(60000);
		}
		return 0;
	}
	child = fork();
	if (child == 0) {
		prctl(PR_SET_NAME, "dlvictim");
		for (volatile unsigned long i = 0;; i++)
			;
	}
	may_run_on(0, 1);
	may_run_on(child, 2);
	usleep(300000);
	for (int i = 0; i < 3; i++) {
		may_run_on(child, 3);
		become(child, 6, 1100, 40000);
		usleep(2500);
		become(child, 0, 0, 0);
		may_run_on(child, 2);
		usleep(60000);
	}
	kill(child, SIGKILL);
	return 0;
}
