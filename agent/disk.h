/* SPDX-License-Identifier: MIT */
/* disk - what `disk` runs: how much room a directory of this machine has. */
#ifndef DISK_H
#define DISK_H

#include "emit.h"

/* Emits a `disk` line for each path; returns 0, or 3 after an error line. */
int disk(char **paths, int count, struct emit *out);

#endif
