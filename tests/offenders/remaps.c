/* SPDX-License-Identifier: MIT */
/* remaps KIND CYCLES: two threads of one process, each changes what is mapped, or what
 * the kernel keeps of the process, in every period: so the kernel switches between them
 * inside a cycle. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 1000000
#define SIZE      65536

static long cycles;
static pthread_t thread[2];

static char *mapped(void)
{
	char *area = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		abort();
	memset(area, 1, SIZE);
	return area;
}

static void map(char *kept)
{
	(void)kept;
	munmap(mapped(), SIZE);
}

static void allocate(char *kept)
{
	char *volatile area = malloc(4 * SIZE);

	(void)kept;
	memset(area, 1, SIZE);
	free(area);
}

static void move(char *kept)
{
	char *area = mremap(mapped(), SIZE, 2 * SIZE, MREMAP_MAYMOVE);

	(void)kept;
	memset(area, 1, 2 * SIZE);
	munmap(area, 2 * SIZE);
}

static void drop(char *kept)
{
	madvise(kept, SIZE, MADV_DONTNEED);
	memset(kept, 1, SIZE);
}

static void protect(char *kept)
{
	mprotect(kept, SIZE / 2, PROT_READ);
	mprotect(kept, SIZE / 2, PROT_READ | PROT_WRITE);
	memset(kept, 1, SIZE);
}

static void start(char *kept)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	memset(kept, 1, SIZE);
}

static void raise_both(char *kept)
{
	(void)kept;
	for (int i = 0; i < 8; i++) {
		pthread_kill(thread[i % 2], SIGUSR1);
		sched_yield();
	}
}

static const struct {
	const char *name;
	void (*change)(char *kept);
} kinds[] = {
	{ "map", map },           { "allocate", allocate }, { "move", move },
	{ "drop", drop },         { "protect", protect },   { "start", start },
	{ "signal", raise_both },
};

static void nothing(int number)
{
	(void)number;
}

static void *loop(void *change)
{
	void (**of_kind)(char *kept) = change;
	char *kept = mapped();
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long i = 0; i < cycles; i++) {
		next.tv_nsec += PERIOD_NS;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL))
			;
		(*of_kind)(kept);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct sched_param urgent = { .sched_priority = 50 };
	const char *kind = argc > 2 ? argv[1] : "";
	void (*change)(char *kept) = NULL;

	cycles = argc > 2 ? atol(argv[2]) : 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(kind, kinds[i].name) == 0)
			change = kinds[i].change;
	if (!change) {
		fprintf(stderr, "usage: remaps KIND CYCLES\n");
		return 2;
	}
	signal(SIGUSR1, nothing);
	if (sched_setscheduler(0, SCHED_FIFO, &urgent)) {
		perror("no real-time priority");
		return 1;
	}
	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, loop, &change))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
