/* SPDX-License-Identifier: MIT */
/* A thread that measures how late it wakes: a line of begin, end and median in ns for
 * each 50 wake-ups. With an argument an ordinary process copies zeros on its CPU. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 1000000
#define EACH      50

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	return (*(const int64_t *)a > *(const int64_t *)b) -
	       (*(const int64_t *)a < *(const int64_t *)b);
}

static void copy_zeros(void)
{
	static char copied[16384];
	const int from = open("/dev/zero", O_RDONLY), to = open("/dev/null", O_WRONLY);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(from, copied, sizeof(copied)) > 0 &&
	       write(to, copied, sizeof(copied)) > 0)
		;
	_exit(1);
}

int main(int argc, char *argv[])
{
	const struct sched_param param = { .sched_priority = 80 };
	int64_t late_ns[EACH], begin_ns, next_ns = now_ns();
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (argc > 1 && argv[1] && sched_setaffinity(0, sizeof(cpus), &cpus) == 0 &&
	    fork() == 0)
		copy_zeros();
	if (mlockall(MCL_CURRENT | MCL_FUTURE) ||
	    sched_setaffinity(0, sizeof(cpus), &cpus) ||
	    syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &param)) /* not in musl */
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (;;) {
		begin_ns = now_ns();
		for (int i = 0; i < EACH; i++) {
			struct timespec until;

			next_ns += PERIOD_NS;
			until = (struct timespec){ next_ns / 1000000000,
						   next_ns % 1000000000 };
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
			late_ns[i] = now_ns() - next_ns;
		}
		qsort(late_ns, EACH, sizeof(late_ns[0]), by_size);
		printf("%lld %lld %lld\n", (long long)begin_ns, (long long)now_ns(),
		       (long long)late_ns[EACH / 2]);
	}
}
