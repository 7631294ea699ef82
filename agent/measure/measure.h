/* SPDX-License-Identifier: MIT */
/* measure - one measurement from its options to its result; what `measure` runs. */
#ifndef MEASURE_H
#define MEASURE_H

#include "host/emit.h"
#include "options.h"

/* EXIT_DONE: measured. */
enum exit_status measure(struct options *options, struct emit *out);

#endif
