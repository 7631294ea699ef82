/* SPDX-License-Identifier: MIT */
#include "tether.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

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

void tether_begin(void)
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

int64_t tether_period_ns(const struct tether *tether)
{
	return tether->heartbeat ? 500000000 : 1000000000;
}

/* Only twice a second: checks in quick succession say nothing about the link. */
static enum tether_end judge_silence(struct tether *tether, int64_t now_ns, bool alive)
{
	if (alive || !tether->heartbeat || !tether->judged_ns) {
		tether->silent = 0;
		tether->judged_ns = now_ns;
	} else if (now_ns - tether->judged_ns >= tether_period_ns(tether) * 7 / 8) {
		/* not the whole period: a check that is less late than the one before
		 * must count, or a lost link is seen half a second later */
		tether->silent++;
		tether->judged_ns = now_ns;
	}
	return tether->silent < 2 ? TETHER_HOLDS : TETHER_LINK;
}

enum tether_end tether_check(struct tether *tether, int64_t now_ns)
{
	/* poll instead of O_NONBLOCK, which the host's side of a terminal would share */
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char bytes[256];
	bool alive = false;

	if (parent_gone)
		return TETHER_PARENT;
	if (stop_asked)
		return TETHER_SIGNAL;
	if (!tether->watch)
		return TETHER_HOLDS;

	while (poll(&in, 1, 0) > 0) {
		ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

		if (n > 0) {
			if (memchr(bytes, 'q', (size_t)n))
				return TETHER_SIGNAL;
			alive = true;
		} else if (n == 0) {
			return TETHER_PARENT;
		} else if (errno != EINTR && errno != EAGAIN) {
			return TETHER_PARENT;
		}
	}
	return judge_silence(tether, now_ns, alive);
}

const char *tether_word(enum tether_end end)
{
	switch (end) {
	case TETHER_SIGNAL:
		return "signal";
	case TETHER_PARENT:
		return "parent";
	case TETHER_LINK:
		return "link";
	case TETHER_HOLDS:
		break;
	}
	return NULL;
}
