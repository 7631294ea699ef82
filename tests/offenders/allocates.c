/* SPDX-License-Identifier: MIT */
/*
 * allocates CYCLES - a FIFO thread of 1 ms that allocates, faults and waits for a lock in
 * planted cycles, says how often it did, and stays. Another thread, of a lower priority,
 * holds the lock.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 1000000
#define PAGE      4096

static int cycles, allocations, faults, takes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int held;
static char *fresh; /* memory that nobody has touched */
static void *volatile kept;

static void sleep_until(long long at)
{
	struct timespec t = { at / 1000000000, at % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void use_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static __attribute__((noinline)) void write_log(int size)
{
	kept = malloc(size); /* the line of allocations */
	free(kept);
	allocations += 2;
}

static __attribute__((noinline)) void grow(void)
{
	void *p = calloc(3, 100);

	kept = realloc(p, 100000);
	free(kept);
	if (posix_memalign((void **)&kept, 64, 256) == 0)
		free(kept);
	kept = aligned_alloc(64, 128);
	free(kept);
	allocations += 7;
}

static __attribute__((noinline)) void touch(int page)
{
	fresh[page * PAGE] = 1; /* the line of faults */
	faults++;
}

static __attribute__((noinline)) void push(void)
{
	takes++;
	pthread_mutex_lock(&lock); /* the line of the lock */
	pthread_mutex_unlock(&lock);
}

/* Takes the lock just before each hundredth cycle of the other. */
static void *hold(void *arg)
{
	long long due = *(long long *)arg;

	use_cpu(0);
	prctl(PR_SET_NAME, "io");
	for (int n = 100; n <= cycles; n += 100) {
		sleep_until(due + n * (long long)PERIOD_NS - 50000);
		pthread_mutex_lock(&lock);
		held = 1;
		sleep_until(due + n * (long long)PERIOD_NS + 100000);
		held = 0;
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void *run(void *arg)
{
	long long due = *(long long *)arg;

	use_cpu(1);
	prctl(PR_SET_NAME, "control");
	for (int n = 1; n <= cycles; n++) {
		sleep_until(due + n * (long long)PERIOD_NS);
		if (n % 100 == 0)
			push();
		if (n % 10 == 0)
			write_log(n);
		if (n % 50 == 0)
			grow();
		if (n % 20 == 0)
			touch(n / 20);
	}
	sleep_until(due + (cycles + 1) * (long long)PERIOD_NS);
	return NULL;
}

static void start(pthread_t *thread, int priority, void *(*run_it)(void *), void *arg)
{
	struct sched_param param = { .sched_priority = priority };
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	if (pthread_create(thread, &attr, run_it, arg))
		exit(1);
}

int main(int argc, char **argv)
{
	pthread_t control, io;
	long long begin;

	cycles = argc > 1 ? atoi(argv[1]) : 200;
	mlockall(MCL_CURRENT); /* not what is touched later */
	fresh = mmap(NULL, (cycles / 20 + 1) * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	begin = now() + 2 * PERIOD_NS;
	start(&io, 10, hold, &begin);
	start(&control, 80, run, &begin);
	pthread_join(control, NULL);
	pthread_join(io, NULL);
	printf("%d %d %d\n", allocations, faults, takes);
	fflush(stdout);
	pause(); /* what is where in its memory is read when its time is over */
	return 0;
}
