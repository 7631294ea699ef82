/* SPDX-License-Identifier: MIT */
#include "host/hostlink.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SILENT_CHECKS = 6 }; /* three seconds: a packet that is lost twice takes one */

static volatile sig_atomic_t stop_asked, parent_gone;

static void note_stop(int signo)
{
	(void)signo;
	stop_asked = 1;
}

static void note_parent(int signo)
{
	(void)signo;
	parent_gone = 1;
}

static void ignore(int signo)
{
	(void)signo; /* its only use is to end a sleep */
}

void hostlink_begin(void)
{
	/* no SA_RESTART: the supervisor's sleep is to end at once */
	const struct sigaction stop = { .sa_handler = note_stop };
	const struct sigaction gone = { .sa_handler = note_parent };
	const struct sigaction wake = { .sa_handler = ignore };
	const struct sigaction none = { .sa_handler = SIG_IGN };
	const struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t blocked;

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &gone, NULL);
	sigaction(SIGUSR1, &wake, NULL);
	sigaction(SIGPIPE, &none, NULL); /* write() reports it */
	sigaction(SIGCHLD, &plain, NULL);
	sigemptyset(&blocked);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	prctl(PR_SET_PDEATHSIG, SIGHUP, 0, 0, 0);
}

int64_t hostlink_period_ns(const struct hostlink *link)
{
	return link->heartbeat ? 500000000 : 1000000000;
}

/* Only twice a second: checks in quick succession say nothing about the link. */
static enum hostlink_end judge_silence(struct hostlink *link, int64_t now_ns,
				       bool alive)
{
	if (alive || !link->heartbeat || !link->judged_ns) {
		link->silent = 0;
		link->judged_ns = now_ns;
	} else if (now_ns - link->judged_ns >= hostlink_period_ns(link) * 7 / 8) {
		/* not the whole period: a check that is less late than the one before
		 * must count, or a lost link is seen half a second later */
		link->silent++;
		link->judged_ns = now_ns;
	}
	return link->silent < SILENT_CHECKS ? HOSTLINK_UP : HOSTLINK_LOST;
}

enum hostlink_end hostlink_check(struct hostlink *link, int64_t now_ns)
{
	/* poll instead of O_NONBLOCK, which the host's side of a terminal would share */
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char bytes[256];
	bool alive = false;

	if (parent_gone)
		return HOSTLINK_PARENT;
	if (stop_asked)
		return HOSTLINK_SIGNAL;
	if (!link->watch)
		return HOSTLINK_UP;

	while (poll(&in, 1, 0) > 0) {
		ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

		if (n > 0) {
			if (memchr(bytes, 'q', (size_t)n))
				return HOSTLINK_SIGNAL;
			alive = true;
		} else if (n == 0) {
			return HOSTLINK_PARENT;
		} else if (errno != EINTR && errno != EAGAIN) {
			return HOSTLINK_PARENT;
		}
	}
	return judge_silence(link, now_ns, alive);
}

const char *hostlink_word(enum hostlink_end end)
{
	switch (end) {
	case HOSTLINK_SIGNAL:
		return "signal";
	case HOSTLINK_PARENT:
		return "parent";
	case HOSTLINK_LOST:
		return "link";
	case HOSTLINK_UP:
		break;
	}
	return NULL;
}
