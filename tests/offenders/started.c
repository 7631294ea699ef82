/* SPDX-License-Identifier: MIT */
/* started: a program with locked memory that sleeps. "started launch" begins it as a
 * person would who knows what it needs: user 1, FIFO 43, CPU 1, limits. */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static int launch(char *self)
{
	const struct sched_param param = { .sched_priority = 43 };
	const struct rlimit priority = { 43, 43 };
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	char *const argv[] = { self, "an argument", "$HOME", "50%", NULL };
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(1, &cpus);
	umask(027);
	if (setrlimit(RLIMIT_RTPRIO, &priority) ||
	    setrlimit(RLIMIT_MEMLOCK, &unlimited) ||
	    sched_setaffinity(0, sizeof(cpus), &cpus) ||
	    sched_setscheduler(0, SCHED_FIFO, &param) || setgid(1) || setuid(1))
		return 1;
	execv(self, argv);
	return 2;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "launch") == 0)
		return launch(argv[0]);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return 3;
	for (;;)
		pause();
}
