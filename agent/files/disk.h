/* SPDX-License-Identifier: MIT */
/* disk - what `disk` runs: how much room a directory of this machine has. */
#ifndef DISK_H
#define DISK_H

#include "host/emit.h"

/* Emits a `disk` line for each path; EXIT_DONE, or another after an error line. */
enum exit_status disk(char **paths, int count, struct emit *out);

#endif
