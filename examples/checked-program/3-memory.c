/* SPDX-License-Identifier: MIT */
/* A controller, a thousand times a second: reads a position, computes a command, keeps
 * all samples, and logs ten commands a second. Step 3: and with locked
 * memory. */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct sample {
	struct sample *before;
	long cycle;
	double position, command;
	char note[224];
};

static struct sample *newest;

static double position_at(long cycle) /* stands for a sensor */
{
	return sin((double)cycle / 500);
}

static double command_for(const struct sample *s)
{
	double sum = 0;

	for (int i = 0; i < 64 && s; i++, s = s->before)
		sum += s->position;
	return -sum / 64;
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

int main(int argc, char **argv)
{
	FILE *log = fopen(argc > 1 ? argv[1] : "control.log", "w");

	if (!log)
		return 1;
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		perror("mlockall");
		return 1;
	}
	if (become_real_time())
		return 1;
	for (long cycle = 0;; cycle++) {
		struct sample *s = malloc(sizeof(*s));

		if (!s)
			return 1;
		s->before = newest;
		s->cycle = cycle;
		s->position = position_at(cycle);
		s->command = command_for(s);
		newest = s;
		if (cycle % 100 == 0) {
			fprintf(log, "%ld %f\n", s->cycle, s->command);
			fflush(log);
		}
		usleep(1000);
	}
}
