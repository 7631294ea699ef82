/* SPDX-License-Identifier: MIT */
/* Solution 4: a mutex with priority inheritance. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double level = 1, valve;
static pthread_mutex_t lock;

static void control(void) /* stands for sensor, computation and actuator */
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 100; i++) {
		level += (valve - level) / 100;
		valve = 2 - level;
	}
	pthread_mutex_unlock(&lock);
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

static long ns_since(const struct timespec *begun)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begun->tv_sec) * 1000000000 + now.tv_nsec - begun->tv_nsec;
}

/* A less urgent thread, which needs the lock for 0.6 ms. */
static void *supervise(void *arg)
{
	struct timespec next, begun;

	if (become_real_time(40))
		exit(1);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		pthread_mutex_lock(&lock);
		clock_gettime(CLOCK_MONOTONIC, &begun);
		while (ns_since(&begun) < 600000)
			;
		pthread_mutex_unlock(&lock);
		add_ns(&next, 3100000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return arg;
}

int main(void)
{
	pthread_mutexattr_t attr;
	struct timespec next;
	pthread_t other;

	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		perror("mlockall");
		return 1;
	}
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &attr);
	if (pthread_create(&other, NULL, supervise, NULL) || become_real_time(80))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		control();
		add_ns(&next, 1000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}
