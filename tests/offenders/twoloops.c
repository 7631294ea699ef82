/* SPDX-License-Identifier: MIT */
/*
 * twoloops CYCLES - two loops of FIFO threads on CPU 1, whose timers expire together; each
 * hundredth cycle of the fast one does more work. At the end it prints, for each cycle,
 * when it was due and when it began by the program's own clock.
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

#define MOST 20000

struct cycle {
	long long due, began;
};

static struct loop {
	const char *name;
	int priority;
	long long period_ns;
	long work, more;
	int cycles;
	struct cycle cycle[MOST];
} loops[2] = {
	{ .name = "fast",
	  .priority = 97,
	  .period_ns = 1000000,
	  .work = 10000,
	  .more = 7500 },
	{ .name = "slow", .priority = 60, .period_ns = 2000000, .work = 25000 },
};

static long long start;

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void spin(long times)
{
	for (volatile long i = 0; i < times / 5; i++)
		;
}

static void *run(void *arg)
{
	struct loop *l = arg;
	long long due = start;

	prctl(PR_SET_NAME, l->name);
	/* After its last cycle it waits once more, as one that exits is not whole. */
	for (int i = 0;; i++) {
		struct timespec t;

		due += l->period_ns;
		t.tv_sec = due / 1000000000;
		t.tv_nsec = due % 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		if (i == l->cycles)
			break;
		l->cycle[i] = (struct cycle){ due, now() };
		spin(l->work + ((i + 1) % 100 ? 0 : l->more));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const int cycles = argc > 1 ? atoi(argv[1]) : 1000;
	pthread_t thread[2];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(1, &set);
	sched_setaffinity(0, sizeof(set), &set);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	memset(loops[0].cycle, 1, sizeof(loops[0].cycle));
	memset(loops[1].cycle, 1, sizeof(loops[1].cycle));
	/* Late enough for both threads, whose stacks are locked when they are made. */
	start = (now() / 1000000 + 200) * 1000000;
	for (int i = 0; i < 2; i++) {
		struct sched_param s = { .sched_priority = loops[i].priority };
		pthread_attr_t a;

		loops[i].cycles = (int)(cycles * 1000000LL / loops[i].period_ns);
		pthread_attr_init(&a);
		pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&a, SCHED_FIFO);
		pthread_attr_setschedparam(&a, &s);
		if (pthread_create(&thread[i], &a, run, &loops[i])) {
			perror("thread");
			return 1;
		}
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < loops[i].cycles; k++)
			printf("%s %lld %lld\n", loops[i].name, loops[i].cycle[k].due,
			       loops[i].cycle[k].began);
	return 0;
}
