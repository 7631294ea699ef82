/* SPDX-License-Identifier: MIT */
/*
 * watchthread - the events of a watched thread: opened, let go on, closed.
 */
#ifndef WATCHTHREAD_H
#define WATCHTHREAD_H

#include <stdbool.h>

#include "watch/watchstate.h"

#define WATCHTHREAD_RING_BYTES (1 << 20) /* of each ring of a few threads; 2^n */
#define WATCHTHREAD_MAX_STACKS 4096      /* of all threads: 90 MB for the host */

/* Adds a thread to those that are watched, or counts it as vanished. Of the agent's `own`
 * probes are left out. -ENOMEM. */
int watchthread_attach(struct watch *w, int tid, bool own);

/* Of software events as many as the ring has room for; of others all, up to a limit that
 * is kept when the ring is emptied. */
void watchthread_go_on(struct watch *w, struct watched *t, unsigned int kind);

/* Takes it out of the rings, and frees it. */
void watchthread_close(struct watch *w, struct watched *t);

#endif
