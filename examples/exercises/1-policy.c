/* SPDX-License-Identifier: MIT */
/* Exercise 1: the controller of a valve, a thousand times a second, with one fault.
 * docs/how-to/learn-by-exercises.md says how to find it. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double level = 1, valve;

static void control(void) /* stands for sensor, computation and actuator */
{
	for (int i = 0; i < 100; i++) {
		level += (valve - level) / 100;
		valve = 2 - level;
	}
}

static int keep_to_one_cpu(void)
{
	const long last = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(last, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus)) {
		perror("the last CPU");
		return -1;
	}
	return 0;
}

static void add_ns(struct timespec *t, long ns)
{
	t->tv_nsec += ns;
	if (t->tv_nsec >= 1000000000) {
		t->tv_nsec -= 1000000000;
		t->tv_sec++;
	}
}

int main(void)
{
	struct timespec next;

	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		perror("mlockall");
		return 1;
	}
	if (keep_to_one_cpu())
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		control();
		add_ns(&next, 1000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}
