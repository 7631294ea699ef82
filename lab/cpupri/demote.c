/* SPDX-License-Identifier: MIT */
/* Takes real-time priority from ordinary threads while their CPU is asked for one.
 *
 * An ordinary thread holds a mutex that inherits priorities, and is lent one, above
 * threads that are within a lock of the kernel, so may not move. When it unlocks it is
 * ordinary again, but still runs: just then the other CPU, whose own real-time thread
 * sleeps, asks this one to give threads away. A kernel that then looks for a CPU for
 * the thread that runs finds a priority that is none. Says on the kernel's log how often
 * each was done. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex;
static atomic_ulong demoted, lent, calls, asked;

static void rt(int priority, int cpu)
{
	struct sched_param p = { .sched_priority = priority };
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu >= 0)
		CPU_SET(cpu, &set);
	for (int i = 0; cpu < 0 && i < 2; i++)
		CPU_SET(i, &set);
	if (sched_setaffinity(0, sizeof(set), &set) ||
	    (priority && pthread_setschedparam(pthread_self(), SCHED_FIFO, &p))) {
		perror("demote");
		exit(1);
	}
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pause_ns(long ns)
{
	struct timespec t = { .tv_nsec = ns };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void spin_ns(int64_t ns)
{
	for (int64_t end = now_ns() + ns; now_ns() < end;)
		;
}

/* Ordinary; is lent a priority while it holds the mutex. */
static void *holder(void *arg)
{
	(void)arg;
	rt(0, -1); /* a thread that one CPU has alone is left out */
	for (;;) {
		pthread_mutex_lock(&mutex);
		spin_ns(70000);
		pthread_mutex_unlock(&mutex);
		atomic_fetch_add_explicit(&demoted, 1, memory_order_relaxed);
		spin_ns(5000);
	}
	return NULL;
}

/* Lends its priority, from the other CPU. */
static void *waiter(void *arg)
{
	(void)arg;
	rt(50, 1);
	for (;;) {
		pause_ns(60000 + rand() % 30000);
		if (pthread_mutex_trylock(&mutex)) {
			atomic_fetch_add_explicit(&lent, 1, memory_order_relaxed);
			pthread_mutex_lock(&mutex);
		}
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

/* Within locks of the kernel nearly always; may run on both CPUs. */
static void *caller(void *arg)
{
	(void)arg;
	rt(40, -1);
	for (;;) {
		for (int i = 0; i < 12; i++) {
			kill(getpid(), 0);
			close(dup(1));
		}
		atomic_fetch_add_explicit(&calls, 24, memory_order_relaxed);
		pause_ns(40000 + rand() % 40000);
	}
	return NULL;
}

/* Lowers its CPU's priority again and again. */
static void *asker(void *arg)
{
	(void)arg;
	rt(60, 1);
	for (;;) {
		pause_ns(4000 + rand() % 8000);
		atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
	}
	return NULL;
}

int main(void)
{
	static void *(*const kind[])(void *) = { holder, waiter, caller, caller,
						 asker };
	pthread_mutexattr_t attr;
	pthread_t thread;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&mutex, &attr);
	for (size_t i = 0; i < sizeof(kind) / sizeof(*kind); i++)
		pthread_create(&thread, NULL, kind[i], NULL);
	for (;;) {
		FILE *log = fopen("/dev/kmsg", "w");

		sleep(1);
		if (!log)
			continue;
		fprintf(log, "demote: %lu unlocked, %lu lent, %lu calls, %lu asked\n",
			demoted, lent, calls, asked);
		fclose(log);
	}
}
