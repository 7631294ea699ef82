// SPDX-License-Identifier: MIT
/* hog NAME POLICY PRIORITY CPU MS [ROUNDS GAP_MS]: compute, without any system call. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <x86intrin.h>

int main(int argc, char **argv)
{
	struct sched_param p = { 0 };
	int rounds = argc > 6 ? atoi(argv[6]) : 1;
	cpu_set_t set;

	if (argc < 6)
		return 2;
	p.sched_priority = atoi(argv[3]);
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[4]), &set);
	sched_setaffinity(0, sizeof(set), &set);
	prctl(PR_SET_NAME, argv[1]);
	sched_setscheduler(0, strcmp(argv[2], "fifo") ? SCHED_OTHER : SCHED_FIFO, &p);
	while (rounds--) {
		uint64_t until = __rdtsc() + atol(argv[5]) * 1000000UL;

		while (__rdtsc() < until)
			;
		usleep(argc > 7 ? atoi(argv[7]) * 1000 : 0);
	}
	return 0;
}
