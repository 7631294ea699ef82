/* SPDX-License-Identifier: MIT */
/*
 * lastcloser - closes the events of a watch while its answer is read already.
 *
 * The kernel takes a probe out when its last descriptor is closed, and waits for all CPUs
 * then: some 85 ms for each (Linux 6.18), one after the other, whoever closes them. So a
 * process of its own has them last. It does nothing but end, which takes the probes out
 * however it ends.
 */
#ifndef LASTCLOSER_H
#define LASTCLOSER_H

struct lastcloser {
	int pipe; /* it ends when this closes; -1: there is none */
};

/* Leaves all that is open now to another process; if there can be none, to this one. */
struct lastcloser lastcloser_begin(void);

/* All is closed here: it may end. */
void lastcloser_end(struct lastcloser *c);

#endif
