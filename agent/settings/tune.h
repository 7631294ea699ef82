/* SPDX-License-Identifier: MIT */
/*
 * tune - what `apply`, `hold` and `restore` run: settings of the machine, changed and
 * put back.
 *
 * Every change is tried, whatever became of the others, and answered by a line. What is
 * applied stays until it is asked back; what is held is put back when the host ends.
 */
#ifndef TUNE_H
#define TUNE_H

#include "host/emit.h"
#include "options.h"

enum exit_status tune_apply(const struct options *o, struct emit *out);
enum exit_status tune_hold(struct options *o, struct emit *out);
enum exit_status tune_restore(const struct options *o, struct emit *out);

#endif
