/* SPDX-License-Identifier: MIT */
/*
 * load - runs the command that keeps the machine busy, and answers for it.
 *
 * Reports once a second that the load lives and how much CPU time it has used, and in
 * windows what each of its processes did; ends it with everything below it when asked, or
 * when the link to the host breaks.
 */
#ifndef LOAD_H
#define LOAD_H

#include "host/emit.h"
#include "options.h"

/* EXIT_DONE: the load was started and is gone. */
enum exit_status load(struct options *options, struct emit *out);

#endif
