/* SPDX-License-Identifier: MIT */
/* Threads with a period that begins at their birth, for programs with a rare worst case. */
#ifndef PERIODIC_H
#define PERIODIC_H

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

struct periodic {
	const char *name;
	int priority, cpu;
	long period_us;
	void (*cycle)(void);
};

#define MOST_THREADS 8
#define STACK_BYTES  (64 << 10)

/* Locked in memory before any thread begins: what makes a thread maps no memory then. */
static _Alignas(4096) char stacks[MOST_THREADS][STACK_BYTES];

/* About 500 million instructions in a virtual second, two in each round. */
static inline void spin_us(long us)
{
	for (volatile long left = us * 60; left > 0; left--)
		;
}

static inline void locked_us(pthread_mutex_t *lock, long us)
{
	pthread_mutex_lock(lock);
	spin_us(us);
	pthread_mutex_unlock(lock);
}

static inline void inheriting(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(lock, &attributes);
}

static void *run_periodic(void *p)
{
	const struct periodic *of = p;
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	pthread_setname_np(pthread_self(), of->name);
	for (;;) {
		next.tv_nsec += of->period_us * 1000;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		of->cycle();
	}
	return NULL;
}

static void start_periodic(const struct periodic *of, char *stack)
{
	pthread_t thread;
	pthread_attr_t attributes;
	struct sched_param priority = { .sched_priority = of->priority };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(of->cpu, &set);
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stack, STACK_BYTES);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
	pthread_attr_setschedparam(&attributes, &priority);
	pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	if (pthread_create(&thread, &attributes, run_periodic, (void *)of)) {
		perror(of->name);
		exit(1);
	}
}

/* The least urgent first, so that none delays the begin of another. Ends with the test. */
static void run_all(const struct periodic *of, int count)
{
	struct timespec for_ever = { 3600, 0 };

	clock_gettime(CLOCK_MONOTONIC, &(struct timespec){ 0 });
	mlockall(MCL_CURRENT | MCL_FUTURE);
	for (int i = 0; i < count; i++)
		start_periodic(&of[i], stacks[i]);
	nanosleep(&for_ever, NULL);
}

#endif
