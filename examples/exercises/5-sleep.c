/* SPDX-License-Identifier: MIT */
/* Exercise 5: the controller of a valve, a thousand times a second, with one fault.
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

int main(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		perror("mlockall");
		return 1;
	}
	if (become_real_time(80))
		return 1;
	for (;;) {
		control();
		usleep(1000);
	}
}
