/* SPDX-License-Identifier: MIT */
#include "watch/lastcloser.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

/* Whoever reads our output waits for its end. Signals of the terminal and of a group are
 * for those that still do something. */
static _Noreturn void wait_and_end(int until)
{
	sigset_t all;
	ssize_t n;
	char c;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setsid();
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		close(fd);
	do {
		n = read(until, &c, 1);
	} while (n < 0 && errno == EINTR);
	_exit(0);
}

struct lastcloser lastcloser_begin(void)
{
	struct lastcloser c = { .pipe = -1 };
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return c;
	child = fork();
	if (child == 0) {
		close(ends[1]);
		wait_and_end(ends[0]);
	}
	close(ends[0]);
	if (child > 0)
		c.pipe = ends[1];
	else
		close(ends[1]);
	return c;
}

void lastcloser_end(struct lastcloser *c)
{
	if (c->pipe >= 0)
		close(c->pipe);
	c->pipe = -1;
}
