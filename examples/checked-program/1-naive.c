/* SPDX-License-Identifier: MIT */
/* A controller, a thousand times a second: reads a position, computes a command, keeps
 * all samples, and logs ten commands a second. Step 1: as one writes it first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

int main(int argc, char **argv)
{
	FILE *log = fopen(argc > 1 ? argv[1] : "control.log", "w");

	if (!log)
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
