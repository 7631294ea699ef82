/* SPDX-License-Identifier: MIT */
/* A controller, a thousand times a second: reads a position, computes a command, keeps
 * the last minute; another thread logs the median ten times a second. Step 8: the same
 * with lib/rtscope_task. */
#include "rtscope_task.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT  60000
#define AHEAD 1000 /* cycles that may begin while the logger copies: one second */

struct sample {
	long cycle;
	double position, command;
};

static struct sample history[KEPT];
static long written; /* the controller's own */
static long kept;    /* what the logger may see of it */
static struct rtsc_mutex lock;

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

static void control(struct rtsc_task *task, void *arg)
{
	struct rtsc_cycle now;

	(void)arg;
	while (rtsc_wait(task, &now)) {
		struct sample *s = &history[written % KEPT];

		s->cycle = written;
		s->position = position_at(written);
		s->command = command_for(written);
		written++;
		/* it never waits: while the logger copies, the news stay for later */
		if (rtsc_mutex_trylock(&lock) == 0) {
			kept = written;
			rtsc_mutex_unlock(&lock);
		}
	}
}

static int by_command(const void *a, const void *b)
{
	const double x = ((const struct sample *)a)->command;
	const double y = ((const struct sample *)b)->command;

	return (x > y) - (x < y);
}

static int write_log(FILE *log)
{
	static struct sample own[KEPT], sorted[KEPT];
	long cycle, seen = 0;

	for (;;) {
		rtsc_mutex_lock(&lock);
		cycle = kept;
		/* after a long wait skip what the controller writes over: it goes on */
		if (seen < cycle - (KEPT - AHEAD))
			seen = cycle - (KEPT - AHEAD);
		for (; seen < cycle; seen++)
			own[seen % KEPT] = history[seen % KEPT];
		rtsc_mutex_unlock(&lock);
		memcpy(sorted, own, sizeof(sorted));
		qsort(sorted, KEPT, sizeof(sorted[0]), by_command);
		if (fprintf(log, "%ld %f\n", cycle, sorted[KEPT / 2].command) < 0 ||
		    fflush(log))
			return 1;
		usleep(100000);
	}
}

int main(int argc, char **argv)
{
	char cpu[24];
	struct rtsc_config config = { .name = "control",
				      .policy = RTSC_POLICY_FIFO,
				      .priority = 80,
				      .cpus = cpu,
				      .period_ns = 1000000 };
	FILE *log = fopen(argc > 1 ? argv[1] : "control.log", "w");
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	struct rtsc *app;

	snprintf(cpu, sizeof(cpu), "%ld", sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (!log || rtsc_mutex_init(&lock) || rtsc_open(&app, NULL, &report) ||
	    rtsc_start(app, &config, control, NULL, &task, &report)) {
		rtsc_report_print(&report, STDERR_FILENO);
		return 1;
	}
	rtsc_report_print(&report, STDERR_FILENO);
	rtsc_go(app);
	return write_log(log);
}
