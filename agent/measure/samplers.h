/* SPDX-License-Identifier: MIT */
/*
  * samplers - the measuring threads of a run, all together: from their start to their end.
 *
 * The supervisor's side; what one thread does is in sampler.
 */
#ifndef SAMPLERS_H
#define SAMPLERS_H

#include <stdbool.h>

#include "host/emit.h"
#include "measure/run.h"

/* Starts a thread for each sampler and waits until all are set up. EXIT_DONE, or another
 * after the error line of the contract; then those that run are to be stopped. */
enum exit_status samplers_start(struct run *run, struct emit *out);

/* Gives each its grid, from which it samples. */
void samplers_release(struct run *run);

/* Says once a second how far they are, until their time is over or the link to the host breaks. */
void samplers_watch(struct run *run, struct emit *out);

/* Waits until all have ended; false if one has not long after it should have. */
bool samplers_wait(struct run *run);

/* Has them end now. */
void samplers_stop(struct run *run);

/* Joins those that were started. */
void samplers_join(struct run *run);

/* Emits the error of a thread that never ran: none of them is to be joined. */
enum exit_status samplers_starved(struct run *run, struct emit *out);

#endif
