/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recorder - what is done at each block and each mark of a board that is recorded. */
#ifndef RECORDER_H
#define RECORDER_H

#include "blocks.h"
#include "cpus.h"
#include "options.h"
#include "worst.h"

/* Returns 0 or -errno. */
int recorder_init(const struct options *options);

void recorder_at_block(struct cpu *cpu, const struct block *block);
void recorder_at_mark(const struct mark *mark);

/* Returns 0 or -errno. */
int recorder_write(const struct options *options, const char *arch);

#endif
