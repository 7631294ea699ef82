/* SPDX-License-Identifier: MIT */
/*
 * hostlink - nothing is left running on a machine whose user is gone.
 *
 * The host holds the other end of standard input. When that closes, the host has ended
 * or was killed. Over a network the host also writes a byte several times a second: a
 * second without one means that the link is lost. A 'q' asks for an orderly end.
 */
#ifndef HOSTLINK_H
#define HOSTLINK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum hostlink_end {
	HOSTLINK_UP,
	HOSTLINK_SIGNAL, /* SIGINT, SIGTERM, or the host asked */
	HOSTLINK_PARENT, /* standard input closed, or SIGHUP */
	HOSTLINK_LOST,   /* no heartbeat for three seconds */
};

struct hostlink {
	bool watch;     /* standard input is the link */
	bool heartbeat; /* and the host writes to it */
	unsigned int silent;
	int64_t judged_ns; /* when silence was last judged; 0: never */
};

/* How often to call hostlink_check(), at least: this sees a lost link within 1.5 s. */
int64_t hostlink_period_ns(const struct hostlink *link);

/* Catches the signals that mean stop, and undoes what was inherited: blocked signals
 * would leave us deaf, and with SIGCHLD ignored a load's end could not be seen. */
void hostlink_begin(void);

/* What has happened since the last call; it may be called at any rate. */
enum hostlink_end hostlink_check(struct hostlink *link, int64_t now_ns);

/* The word of the contract; NULL for HOSTLINK_UP. */
const char *hostlink_word(enum hostlink_end end);

#endif
