/* SPDX-License-Identifier: MIT */
/* measure - one measurement from its options to its result; what `measure` runs. */
#ifndef MEASURE_H
#define MEASURE_H

#include "emit.h"
#include "options.h"

/* Returns the exit status: 0 measured, 3 no valid measurement. */
int measure(struct options *options, struct emit *out);

/* Emits the error line of the contract; returns 3. */
int measure_fail(struct emit *out, const char *cause, const char *message,
		 const char *remedy);

#endif
