/* SPDX-License-Identifier: MIT */
/*
 * switches - two real-time threads on CPU 1 wake each other by futexes, as fast as they
 * can, and print how often a second. With "quiet": one thread that sleeps for 1 ms each;
 * with "busy" it computes for most of that.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int turn;
static long rounds;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *play(void *mine)
{
	int me = *(const int *)mine;

	for (long i = 0; i < rounds; i++) {
		while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != me)
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !me, NULL, NULL,
				0);
		__atomic_store_n(&turn, !me, __ATOMIC_RELEASE);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static unsigned int compute(unsigned int sum)
{
	for (int i = 0; i < 60000; i++)
		sum = sum & 1 ? 3 * sum + 1 : sum / 2 + (unsigned int)i;
	return sum;
}

static void *work(void *nothing)
{
	const struct timespec t = { 0, 1000 };
	unsigned int sum = 7;

	for (long i = 0; i < rounds; i++) {
		sum = compute(sum);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	}
	return sum ? nothing : NULL;
}

static void *rest(void *nothing)
{
	const struct timespec t = { 0, 1000000 };

	for (long i = 0; i < rounds; i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	return nothing;
}

int main(int argc, char **argv)
{
	void *(*one)(void *) = argc <= 2                      ? NULL
			       : strcmp(argv[2], "busy") == 0 ? work
							      : rest;
	int number[2] = { 0, 1 };
	struct sched_param high = { .sched_priority = 50 };
	pthread_t thread[2];
	double began;
	cpu_set_t set;

	rounds = argc > 1 ? atol(argv[1]) : 1000;
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	if (sched_setaffinity(0, sizeof(set), &set) ||
	    pthread_setschedparam(pthread_self(), SCHED_FIFO, &high))
		return 1;
	began = now_s();
	for (int i = 0; i < (one ? 1 : 2); i++)
		if (pthread_create(&thread[i], NULL, one ? one : play, &number[i]))
			return 1;
	for (int i = 0; i < (one ? 1 : 2); i++)
		pthread_join(thread[i], NULL);
	printf("%.0f switches a second\n", 2.0 * (double)rounds / (now_s() - began));
	return 0;
}
