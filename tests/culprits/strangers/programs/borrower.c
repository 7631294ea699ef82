// SPDX-License-Identifier: MIT
/*
 * `borrower` takes the lock of /dev/gate; a debugger in its parent stops it for 2 ms,
 * lets it go on, and only then it gives the lock back.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	atomic_int *has = mmap(0, 4096, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cpu_set_t set;
	pid_t child;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	child = fork();
	if (child == 0) {
		int gate = open("/dev/gate", O_WRONLY);

		prctl(PR_SET_NAME, "borrower");
		usleep(300000);
		for (int i = 0; i < 3; i++) {
			*has = 1;
			write(gate, "L", 1);
			while (*has == 1)
				usleep(100);
			write(gate, "U", 1);
			usleep(50000);
		}
		_exit(0);
	}
	prctl(PR_SET_NAME, "debugger");
	for (int i = 0; i < 3; i++) {
		int status;

		while (*has != 1)
			usleep(200);
		ptrace(PTRACE_ATTACH, child, 0, 0);
		waitpid(child, &status, __WALL);
		usleep(2000);
		*has = 2;
		ptrace(PTRACE_DETACH, child, 0, 0);
	}
	wait(0);
	return 0;
}
