/* SPDX-License-Identifier: MIT */
/*
 * load - runs the command that keeps the machine busy, and answers for it.
 *
 * Reports once a second that the load lives and how much CPU time it has used; ends it
 * with everything below it when asked, or when the tether breaks.
 */
#ifndef LOAD_H
#define LOAD_H

#include "emit.h"
#include "options.h"

/* Returns the exit status: 0 the load was started and is gone, 3 it could not be. */
int load(struct options *options, struct emit *out);

#endif
