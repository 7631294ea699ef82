/* SPDX-License-Identifier: MIT */
#include "watch/lastcloser.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_LIVING 8
#define MOST_TAKEN  1024
#define MOST_KEPT   32 /* probes of some threads: each costs whoever comes by */

static pid_t living[MOST_LIVING];
static int taken[MOST_TAKEN], kept[MOST_KEPT];
static unsigned int taken_now, kept_now;
static bool ending; /* another process has all of them */

/* Returns where a new one is noted; NULL: there are as many as may be. */
static pid_t *find_room(void)
{
	pid_t *room = NULL;

	for (int i = 0; i < MOST_LIVING; i++) {
		if (living[i] && waitpid(living[i], NULL, WNOHANG) != 0)
			living[i] = 0;
		if (!living[i])
			room = &living[i];
	}
	return room;
}

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

struct lastcloser lastcloser_begin(bool last)
{
	struct lastcloser c = { .pipe = -1 };
	pid_t *room = find_room();
	int ends[2];
	pid_t child;

	ending = ending || last;
	if (!room && !last)
		return c;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return c;
	child = fork();
	if (child == 0) {
		close(ends[1]);
		wait_and_end(ends[0]);
	}
	close(ends[0]);
	if (child > 0 && room)
		*room = child;
	if (child > 0)
		c.pipe = ends[1];
	else
		close(ends[1]);
	return c;
}

void lastcloser_close(void)
{
	while (taken_now > 0)
		close(taken[--taken_now]);
}

void lastcloser_end(struct lastcloser *c)
{
	lastcloser_close();
	while (kept_now > 0)
		close(kept[--kept_now]);
	if (c->pipe >= 0)
		close(c->pipe);
	c->pipe = -1;
}

bool lastcloser_release(void)
{
	const bool any = taken_now + kept_now > 0;
	struct lastcloser c;

	if (!any)
		return false;
	c = lastcloser_begin(false);
	lastcloser_end(&c);
	return true;
}

void lastcloser_take(int fd)
{
	if (ending || taken_now == MOST_TAKEN)
		close(fd);
	else
		taken[taken_now++] = fd;
}

void lastcloser_keep(int fd)
{
	if (ending) {
		close(fd);
		return;
	}
	if (kept_now == MOST_KEPT)
		lastcloser_release();
	kept[kept_now++] = fd;
}
