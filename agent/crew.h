/* SPDX-License-Identifier: MIT */
/*
 * crew - the measuring threads of a run, all together: from their start to their end.
 *
 * The supervisor's side; what one thread does is in sampler.
 */
#ifndef CREW_H
#define CREW_H

#include <stdbool.h>

#include "emit.h"
#include "run.h"

/* Starts a thread for each sampler and waits until all are set up. 0, or an exit status
 * after the error line of the contract; then those that run are to be stopped. */
int crew_start(struct run *run, struct emit *out);

/* Gives each its grid, from which it samples. */
void crew_let_go(struct run *run);

/* Says once a second how far they are, until their time is over or the tether breaks. */
void crew_watch(struct run *run, struct emit *out);

/* Waits until all have ended; false if one has not long after it should have. */
bool crew_wait(struct run *run);

/* Has them end now. */
void crew_stop(struct run *run);

/* Joins those that were started. */
void crew_join(struct run *run);

/* Emits the error of a thread that never ran: none of them is to be joined. Returns 3. */
int crew_starved(struct run *run, struct emit *out);

#endif
