/* SPDX-License-Identifier: MIT */
/*
 * tune - what `apply`, `hold` and `restore` run: settings of the machine, changed and
 * put back.
 *
 * Every wish is tried, whatever became of the others, and answered by a line. What is
 * applied stays until it is asked back; what is held is put back when the host ends.
 */
#ifndef TUNE_H
#define TUNE_H

#include "emit.h"
#include "options.h"

/* All return the agent's exit status. */
int tune_apply(const struct options *o, struct emit *out);
int tune_hold(struct options *o, struct emit *out);
int tune_restore(const struct options *o, struct emit *out);

#endif
