/* SPDX-License-Identifier: MIT */
/*
 * cyclewatch - when the threads of one process are woken, run and sleep, by the kernel's
 * events in an instance of our own; and the whole trace around the longest cycles.
 *
 * Nothing is changed in the process. Emits `cycles`, `cycle_runs` while they come,
 * the trace of the longest ones, and `cycles_end`.
 */
#ifndef CYCLEWATCH_H
#define CYCLEWATCH_H

#include "host/emit.h"
#include "options.h"

enum exit_status cyclewatch(struct options *options, struct emit *out);

#endif
