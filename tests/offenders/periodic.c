/* SPDX-License-Identifier: MIT */
/* periodic KIND CYCLES FILE: a program that logs its own cycles: when each was due, and
 * when its own code began and ended. Every 20th cycle the kind "skip" leaves out two
 * periods, and "long" computes for two and a half. */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 2000000
#define WORK_NS   100000

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static struct timespec spec(int64_t ns)
{
	return (struct timespec){ ns / 1000000000, ns % 1000000000 };
}

static void compute(int64_t ns)
{
	const int64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

int main(int argc, char **argv)
{
	const struct sched_param param = { .sched_priority = 70 };
	const char *kind = argc > 3 ? argv[1] : "";
	const long cycles = argc > 3 ? atol(argv[2]) : 0;
	int64_t (*log)[3] = calloc((size_t)cycles + 1, sizeof(*log));
	int64_t next = now_ns() + PERIOD_NS;
	int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec grid = { spec(PERIOD_NS), spec(next) };
	FILE *file;

	if (!log || argc < 4)
		return 2;
	mlockall(MCL_CURRENT | MCL_FUTURE);
	sched_setscheduler(0, SCHED_FIFO, &param);
	if (strcmp(kind, "timerfd") == 0)
		timerfd_settime(timer, TFD_TIMER_ABSTIME, &grid, NULL);
	for (long i = 0; i < cycles; i++) {
		const int special = i % 20 == 19;
		uint64_t expired = 1;

		if (strcmp(kind, "timerfd") == 0) {
			if (read(timer, &expired, sizeof(expired)) < 0)
				return 3;
		} else if (strcmp(kind, "relative") == 0) {
			struct timespec period = spec(PERIOD_NS);

			clock_nanosleep(CLOCK_MONOTONIC, 0, &period, NULL);
		} else {
			struct timespec until = spec(next);

			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		}
		log[i][0] = next; /* of several expiries, the first was due */
		next += (int64_t)(expired - 1) * PERIOD_NS;
		log[i][1] = now_ns();
		compute(special && strcmp(kind, "long") == 0 ? 5 * PERIOD_NS / 2
							     : WORK_NS);
		log[i][2] = now_ns();
		next += special && strcmp(kind, "skip") == 0 ? 3 * PERIOD_NS
							     : PERIOD_NS;
	}
	file = fopen(argv[3], "w");
	if (!file)
		return 4;
	for (long i = 0; i < cycles; i++)
		fprintf(file, "%lld %lld %lld\n", (long long)log[i][0],
			(long long)log[i][1], (long long)log[i][2]);
	return fclose(file) ? 4 : 0;
}
