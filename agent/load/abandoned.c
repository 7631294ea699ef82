/* SPDX-License-Identifier: MIT */
#include "load/abandoned.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

/* The header of lib/rtscope_task.h, in words. */
#define MAGIC     UINT64_C(0x6b73617463737472)
#define WORDS     11
#define OF_PID    7
#define OF_CLOSED 10

void abandoned_note(void *abandoned, const struct procstat *process)
{
	struct abandoned *a = abandoned;

	if (a->count < ABANDONED_PROCESSES)
		a->pid[a->count++] = process->pid;
}

/* Whether it is a file of this process that was never closed, and nobody has it. */
static bool is_left(int fd, int pid)
{
	uint64_t word[WORDS];

	return pread(fd, word, sizeof(word), 0) == (ssize_t)sizeof(word) &&
	       word[0] == MAGIC && word[OF_PID] == (uint64_t)pid && !word[OF_CLOSED] &&
	       flock(fd, LOCK_EX | LOCK_NB) == 0;
}

void abandoned_remove(const struct abandoned *a, const char *directory)
{
	for (unsigned int i = 0; i < a->count; i++) {
		char path[256];
		int fd;

		snprintf(path, sizeof(path), "%.200s/rtscope-task.%d", directory,
			 a->pid[i]);
		/* O_NONBLOCK: a pipe of that name must not hold us up */
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (is_left(fd, a->pid[i]))
			unlink(path);
		close(fd);
	}
}
