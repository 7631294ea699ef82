/* SPDX-License-Identifier: MIT */
/*
 * misbehaved WAY: a program that does not run as a test asks, or tells where it runs.
 *
 * Every way but `ask` is one that a test must name.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define MIB (1UL << 20)

static void real_time(int priority)
{
	const struct sched_param p = { .sched_priority = priority };

	if (sched_setscheduler(0, SCHED_FIFO, &p))
		printf("no real-time priority: %s\n", strerror(errno));
}

/* A loop of 1 kHz, so that there is something to judge. */
static void loop(long cycles)
{
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long i = 0; i < cycles; i++) {
		next.tv_nsec += 1000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}

static void ask(void)
{
	char text[256];
	FILE *file = fopen("/etc/asked.conf", "r");

	printf("uid %d gid %d\n", (int)getuid(), (int)getgid());
	printf("in %s\n", getcwd(text, sizeof(text)));
	printf("A=%s\n", getenv("A") ? getenv("A") : "");
	printf("file %s", file && fgets(text, sizeof(text), file) ? text : "none\n");
	while (fgets(text, sizeof(text), stdin))
		printf("stdin %s", text);
	file = fopen("/tmp/left", "r");
	printf("/tmp is %s\n", file ? "of a start before" : "new");
	file = fopen("/tmp/left", "w");
	printf("random numbers at once: %s\n",
	       getrandom(text, 1, GRND_NONBLOCK) == 1 ? "yes" : strerror(errno));
	fprintf(stderr, "to standard error\n");
	fflush(stdout);
	real_time(50);
	loop(200);
}

static void *spin(void *forever)
{
	while (forever)
		__asm__ volatile("");
	return NULL;
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	if (!strcmp(way, "ask")) {
		ask();
	} else if (!strcmp(way, "crash")) {
		printf("before the crash\n");
		fflush(stdout);
		*(volatile int *)8 = 1;
	} else if (!strcmp(way, "fail")) {
		fprintf(stderr, "no such device\n");
		return 4;
	} else if (!strcmp(way, "spin")) {
		pthread_t thread;

		real_time(80);
		for (int i = 0; i < 4; i++)
			pthread_create(&thread, NULL, spin, argv);
		spin(argv);
	} else if (!strcmp(way, "background")) {
		if (fork() == 0) {
			setsid();
			real_time(50);
			loop(10000);
		}
	} else if (!strcmp(way, "memory")) {
		for (char *piece; (piece = malloc(MIB));)
			memset(piece, 1, MIB);
	} else if (!strcmp(way, "output")) {
		real_time(50);
		while (printf("%0200d\n", 7) > 0)
			;
		loop(10000);
	}
	return 0;
}
