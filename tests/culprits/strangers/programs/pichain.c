// SPDX-License-Identifier: MIT
/*
 * Three threads on the second CPU and two mutexes with priority inheritance: pi_high
 * (FIFO 80) waits for pi_mid (20), which waits for pi_low (10), which computes at 80.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t one, two;
static sem_t low_has, mid_waits;
static atomic_int high_waits;

static void run_as(const char *name, int priority)
{
	struct sched_param p = { .sched_priority = priority };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(1, &set);
	prctl(PR_SET_NAME, name);
	/* Before it goes there: pi_low lets no ordinary thread run on that CPU. */
	sched_setscheduler(0, SCHED_FIFO, &p);
	sched_setaffinity(0, sizeof(set), &set);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void *low(void *unused)
{
	double until;

	run_as("pi_low", 10);
	pthread_mutex_lock(&one);
	sem_post(&low_has);
	while (!high_waits)
		;
	until = now() + 0.0013;
	while (now() < until)
		;
	pthread_mutex_unlock(&one);
	return unused;
}

static void *mid(void *unused)
{
	run_as("pi_mid", 20);
	sem_wait(&low_has);
	pthread_mutex_lock(&two);
	sem_post(&mid_waits);
	pthread_mutex_lock(&one);
	pthread_mutex_unlock(&one);
	pthread_mutex_unlock(&two);
	return unused;
}

static void *high(void *unused)
{
	run_as("pi_high", 80);
	sem_wait(&mid_waits);
	usleep(3000);
	high_waits = 1;
	pthread_mutex_lock(&two);
	pthread_mutex_unlock(&two);
	return unused;
}

int main(void)
{
	void *(*roles[])(void *) = { high, mid, low };
	pthread_mutexattr_t attr;
	pthread_t threads[3];

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&one, &attr);
	pthread_mutex_init(&two, &attr);
	sem_init(&low_has, 0, 0);
	sem_init(&mid_waits, 0, 0);
	usleep(300000);
	for (int round = 0; round < 3; round++) {
		high_waits = 0;
		for (int i = 0; i < 3; i++)
			pthread_create(&threads[i], 0, roles[i], 0);
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], 0);
		usleep(50000);
	}
	return 0;
}
