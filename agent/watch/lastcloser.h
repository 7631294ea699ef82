/* SPDX-License-Identifier: MIT */
/*
 * lastcloser - closes events of a watch late: when others are open, or by a process of
 * its own.
 *
 * The kernel waits for all CPUs where the last event of a tracepoint is closed, some 35
 * ms, and at each probe, some 85 ms (Linux 6.18), one after the other, whoever closes
 * them; who opens one meanwhile waits, too. So those of threads that have ended are closed
 * when the threads that came have theirs, and probes when there are many, or at the end:
 * by a process that does nothing but end, which closes all however it ends. There are few
 * of them at a time.
 */
#ifndef LASTCLOSER_H
#define LASTCLOSER_H

#include <stdbool.h>

struct lastcloser {
	int pipe; /* it ends when this closes; -1: there is none */
};

/* Takes an event that is stopped: closed by lastcloser_close(). */
void lastcloser_take(int fd);
void lastcloser_close(void);

/* Takes a probe that is stopped. */
void lastcloser_keep(int fd);

/* Closes all that was taken and kept, as there are too many descriptors. Returns whether
 * there was one. */
bool lastcloser_release(void);

/* Leaves all that is open now to another process; if there can be none, to this one. The
 * last of a watch is made however many there are. */
struct lastcloser lastcloser_begin(bool last);

/* Closes all that was taken and kept. All is closed here then: it may end. */
void lastcloser_end(struct lastcloser *c);

#endif
