/* SPDX-License-Identifier: MIT */
/* A loop of 1 kHz at a real-time priority: the program of the tutorial. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PERIOD_NS 1000000L
#define NS_PER_S  1000000000L
#define TAPS      64

static double filtered(const double *past, const double *weights)
{
	double sum = 0;

	for (int i = 0; i < TAPS; i++)
		sum += past[i] * weights[i];
	return sum;
}

int main(void)
{
	const struct sched_param priority = { .sched_priority = 80 };
	static double past[TAPS], weights[TAPS];
	struct timespec next;

	if (sched_setscheduler(0, SCHED_FIFO, &priority) ||
	    mlockall(MCL_CURRENT | MCL_FUTURE)) {
		fprintf(stderr, "hello: no real-time priority: %s\n", strerror(errno));
		return 1;
	}
	for (int i = 0; i < TAPS; i++)
		weights[i] = 1.0 / TAPS;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (int cycle = 0;; cycle++) {
		next.tv_nsec += PERIOD_NS;
		if (next.tv_nsec >= NS_PER_S) {
			next.tv_nsec -= NS_PER_S;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		past[cycle % TAPS] = cycle;
		past[0] = filtered(past, weights);
	}
}
