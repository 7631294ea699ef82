/* SPDX-License-Identifier: MIT */
#include "tether.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile sig_atomic_t stop_asked;

static void note_stop(int signo)
{
	(void)signo;
	stop_asked = 1;
}

static void ignore(int signo)
{
	(void)signo; /* its only use is to end a sleep */
}

int tether_begin(const struct tether *tether)
{
	/* no SA_RESTART: the supervisor's sleep is to end at once */
	const struct sigaction stop = { .sa_handler = note_stop };
	const struct sigaction wake = { .sa_handler = ignore };
	const struct sigaction none = { .sa_handler = SIG_IGN };

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	sigaction(SIGUSR1, &wake, NULL);
	sigaction(SIGPIPE, &none, NULL); /* write() reports it */
	prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);

	if (tether->watch && fcntl(STDIN_FILENO, F_SETFL,
				   fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

int64_t tether_period_ns(const struct tether *tether)
{
	return tether->heartbeat ? 500000000 : 1000000000;
}

enum tether_end tether_check(struct tether *tether)
{
	char bytes[256];
	bool alive = false;

	if (stop_asked)
		return TETHER_SIGNAL;
	if (!tether->watch)
		return TETHER_HOLDS;

	for (;;) {
		ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

		if (n > 0) {
			if (memchr(bytes, 'q', (size_t)n))
				return TETHER_SIGNAL;
			alive = true;
		} else if (n == 0) {
			return TETHER_PARENT;
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != EINTR) {
			return TETHER_PARENT;
		}
	}
	if (alive || !tether->heartbeat)
		tether->silent = 0;
	else
		tether->silent++;
	return tether->silent < 2 ? TETHER_HOLDS : TETHER_LINK;
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
