/* SPDX-License-Identifier: MIT */
/*
 * A real-time loop of 2 ms that allocates, and then becomes another program.
 *
 * executes first|worker|deleted CYCLES [PROGRAM...]: the first thread or another one
 * executes the first PROGRAM after so many cycles, with the others to follow it; a
 * deleted one deletes its file when it begins. Without a PROGRAM it goes on for ever.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 2000000L
#define SECOND_NS 1000000000L

static char **words;
static int cycles;

static void allocate(void)
{
	void *volatile memory = malloc(100000);

	free(memory);
}

static void loop(void)
{
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int i = 0; i < cycles || !words[3]; i++) {
		next.tv_nsec += PERIOD_NS;
		if (next.tv_nsec >= SECOND_NS) {
			next.tv_nsec -= SECOND_NS;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		allocate();
	}
}

static void *work(void *unused)
{
	char *next = words[3];

	loop();
	words[3] = words[2];
	words[2] = words[1];
	words[1] = next;
	execv(next, words + 1);
	perror(next);
	exit(1);
	return unused;
}

int main(int argc, char **argv)
{
	const struct sched_param param = { .sched_priority = 30 };
	pthread_t thread;

	if (argc < 3)
		return 2;
	words = argv;
	cycles = atoi(argv[2]);
	sched_setscheduler(0, SCHED_FIFO, &param);
	if (strcmp(argv[1], "deleted") == 0)
		unlink(argv[0]);
	if (strcmp(argv[1], "worker") == 0) {
		if (pthread_create(&thread, NULL, work, NULL))
			return 1;
		pthread_setname_np(thread, "worker");
		for (;;)
			pause();
	}
	work(NULL);
	return 0;
}
