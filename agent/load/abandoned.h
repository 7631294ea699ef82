/* SPDX-License-Identifier: MIT */
/*
 * abandoned - statistics of lib/rtscope_task that a program leaves when it is ended.
 *
 * They stay after a crash, to be read. A program that we started and ended has not
 * crashed, and nobody else would remove its file.
 */
#ifndef ABANDONED_H
#define ABANDONED_H

#include "machine/procstat.h"

#define ABANDONED_PROCESSES                                                            \
	64 /* of a program that starts others; more are not tidied */

struct abandoned {
	int pid[ABANDONED_PROCESSES];
	unsigned int count;
};

/* A proctree_visitor: notes a process that is about to be ended. */
void abandoned_note(void *abandoned, const struct procstat *process);

/*
 * Removes the files of these processes in a directory (/dev/shm), unless a living
 * process holds one, its program closed it and wants it kept, or it is none.
 */
void abandoned_remove(const struct abandoned *a, const char *directory);

#endif
