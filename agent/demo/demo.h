/* SPDX-License-Identifier: MIT */
/*
 * demo - threads that follow scripts on one CPU, and what each of them did when.
 *
 * A watchdog of the highest priority ends all of them at the given time, whatever they
 * do; if it cannot, the kernel's RLIMIT_RTTIME does. Nothing is changed on the machine.
 */
#ifndef DEMO_H
#define DEMO_H

#include "host/emit.h"
#include "options.h"

/* Runs the scripts among the operands; emits `demo`, `demo_events` and `demo_end`. */
enum exit_status demo(struct options *options, struct emit *out);

#endif
