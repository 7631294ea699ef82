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
	TETHER_SIGNAL, /* SIGINT, SIGTERM, SIGHUP, or the host asked */
	TETHER_PARENT, /* standard input closed */
	TETHER_LINK,   /* no heartbeat for a second */
};

struct tether {
	bool watch;	/* standard input is the tether */
	bool heartbeat; /* and the host writes to it */
	unsigned int silent;
};

/* How often to call tether_check(): twice a second sees a lost link within 1.5 s. */
int64_t tether_period_ns(const struct tether *tether);

/* Catches the signals that mean stop, and makes standard input non-blocking. */
int tether_begin(const struct tether *tether);

/* What has happened since the last call. */
enum tether_end tether_check(struct tether *tether);

/* The word of the contract; NULL for TETHER_HOLDS. */
const char *tether_word(enum tether_end end);

#endif
