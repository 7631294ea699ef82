/* SPDX-License-Identifier: MIT */
/*
 * startlock - locks the memory of a program from outside, before its first instruction.
 *
 * mlockall() does not survive execve(2), and the kernel has no setting that does. So a
 * second process, no child of the program, traces it until it has become the program,
 * makes it call mlockall(MCL_CURRENT | MCL_FUTURE) at its first instruction, reads
 * VmLck, and lets it go. If that fails, the program ends with status 3 instead of
 * running unlocked; if the second process dies, the kernel ends the program.
 */
#ifndef STARTLOCK_H
#define STARTLOCK_H

#include <stdint.h>

/* How it went; of a failure, what and errno. */
struct startlock {
	const char *failed; /* NULL: locked */
	int err;
	int64_t locked_kb; /* VmLck of the program */
};

/* Called by the second process for the result, while the program waits: it says so to
 * the user. The same for both outcomes. */
typedef void startlock_done(const struct startlock *lock, void *arg);

/* Makes the second process. 0, or -errno: then nothing is traced. */
int startlock_begin(startlock_done *done, void *arg);

#endif
