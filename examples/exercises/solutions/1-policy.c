/* SPDX-License-Identifier: MIT */
/* Solution 1: SCHED_FIFO, so that no ordinary thread takes its CPU. */
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

static int become_real_time(int priority)
{
	const struct sched_param param = { .sched_priority = priority };
	const long last = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(last, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) ||
	    sched_setscheduler(0, SCHED_FIFO, &param)) {
		perror("FIFO on the last CPU");
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
	if (become_real_time(80))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		control();
		add_ns(&next, 1000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}
