/* SPDX-License-Identifier: MIT */
/*
 * watch - what the threads of one process do that costs them time, seen from outside.
 *
 * Attaches to each thread, also to those that begin later: nothing is restarted, loaded
 * into the process or changed in it. Emits `watch`, a `watch_sample` for each copied
 * stack, a `watched` line for each thread, and `watch_end`.
 */
#ifndef WATCH_H
#define WATCH_H

#include "host/emit.h"
#include "options.h"

enum exit_status watch(struct options *options, struct emit *out);

#endif
