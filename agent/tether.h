/* SPDX-License-Identifier: MIT */
/*
 * tether - nothing is left running on a machine whose user is gone.
 *
 * The host holds the other end of standard input. When that closes, the host has ended
 * or was killed. Over a network the host also writes a byte several times a second: a
 * second without one means that the link is lost. A 'q' asks for an orderly end.
 */
#ifndef TETHER_H
#define TETHER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum tether_end {
	TETHER_HOLDS,
	TETHER_SIGNAL, /* SIGINT, SIGTERM, or the host asked */
	TETHER_PARENT, /* standard input closed, or SIGHUP */
	TETHER_LINK,   /* no heartbeat for a second */
};

struct tether {
	bool watch;     /* standard input is the tether */
	bool heartbeat; /* and the host writes to it */
	unsigned int silent;
	int64_t judged_ns; /* when silence was last judged; 0: never */
};

/* How often to call tether_check(), at least: this sees a lost link within 1.5 s. */
int64_t tether_period_ns(const struct tether *tether);

/* Catches the signals that mean stop, and undoes what was inherited: blocked signals
 * would leave us deaf, and with SIGCHLD ignored a load's end could not be seen. */
void tether_begin(void);

/* What has happened since the last call; it may be called at any rate. */
enum tether_end tether_check(struct tether *tether, int64_t now_ns);

/* The word of the contract; NULL for TETHER_HOLDS. */
const char *tether_word(enum tether_end end);

#endif
