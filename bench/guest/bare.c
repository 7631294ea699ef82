/* SPDX-License-Identifier: MIT */
/*
 * bare CPU COUNT - the loop below which no measurement of wake-ups can go: sleep to an
 * absolute time, read the clock. FIFO 99 on one CPU, every INTERVAL_NS.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "thread/clock.h"

int main(int argc, char **argv)
{
	const struct sched_param fifo = { .sched_priority = 99 };
	long count = argc == 3 ? atol(argv[2]) : 0;
	struct timespec expiry;
	int64_t sum_ns = 0;
	cpu_set_t cpus;

	if (count < 1) {
		fprintf(stderr, "usage: bare CPU COUNT\n");
		return 2;
	}
	CPU_ZERO(&cpus);
	CPU_SET((size_t)atol(argv[1]), &cpus);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) ||
	    syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &fifo) || /* musl has none */
	    mlockall(MCL_CURRENT | MCL_FUTURE)) {
		perror("bare");
		return 3;
	}

	/* as the agent does, for all threads to be asleep */
	expiry = ns_timespec(clock_now_ns() + 20 * INTERVAL_NS);
	for (long i = 0; i < count; i++) {
		expiry.tv_nsec += INTERVAL_NS;
		if (expiry.tv_nsec >= NS_PER_S) {
			expiry.tv_nsec -= NS_PER_S;
			expiry.tv_sec++;
		}
		clock_sleep_until(&expiry);
		sum_ns += clock_now_ns() - timespec_ns(expiry);
	}
	printf("%ld wake-ups, on average %lld ns late\n", count,
	       (long long)(sum_ns / count));
	return 0;
}
