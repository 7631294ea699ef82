/* SPDX-License-Identifier: MIT */
/* A controller, a thousand times a second: reads a position, computes a command, keeps
 * the last minute, and logs ten commands a second. Step 6: another thread
 * writes the log, with the median of the minute. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define KEPT 60000

struct sample {
	long cycle;
	double position, command;
};

static struct sample history[KEPT];
static long kept;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double position_at(long cycle) /* stands for a sensor */
{
	return sin((double)cycle / 500);
}

static double command_for(long cycle)
{
	double sum = 0;

	for (long i = 0; i < 64 && i <= cycle; i++)
		sum += history[(cycle - i) % KEPT].position;
	return -sum / 64;
}

static void add_ns(struct timespec *t, long ns)
{
	t->tv_nsec += ns;
	if (t->tv_nsec >= 1000000000) {
		t->tv_nsec -= 1000000000;
		t->tv_sec++;
	}
}

static int become_real_time(void)
{
	const struct sched_param param = { .sched_priority = 80 };
	const long last = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(last, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) ||
	    sched_setscheduler(0, SCHED_FIFO, &param)) {
		perror("FIFO 80 on the last CPU");
		return -1;
	}
	return 0;
}

static int by_command(const void *a, const void *b)
{
	const double x = ((const struct sample *)a)->command;
	const double y = ((const struct sample *)b)->command;

	return (x > y) - (x < y);
}

static void *write_log(void *arg)
{
	static struct sample sorted[KEPT];
	FILE *log = arg;

	for (;;) {
		pthread_mutex_lock(&lock);
		memcpy(sorted, history, sizeof(sorted));
		qsort(sorted, KEPT, sizeof(sorted[0]), by_command);
		fprintf(log, "%ld %f\n", kept, sorted[KEPT / 2].command);
		pthread_mutex_unlock(&lock);
		fflush(log);
		usleep(100000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct timespec next;
	pthread_t logger;
	FILE *log = fopen(argc > 1 ? argv[1] : "control.log", "w");

	if (!log)
		return 1;
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		perror("mlockall");
		return 1;
	}
	/* before this thread has its policy and its CPU, which the new one would inherit */
	if (pthread_create(&logger, NULL, write_log, log) || become_real_time())
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long cycle = 0;; cycle++) {
		struct sample *s = &history[cycle % KEPT];

		pthread_mutex_lock(&lock);
		s->cycle = cycle;
		s->position = position_at(cycle);
		s->command = command_for(cycle);
		kept = cycle + 1;
		pthread_mutex_unlock(&lock);
		add_ns(&next, 1000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}
