/* SPDX-License-Identifier: MIT */
/* readfile - what `read` runs: files of this machine for the host's facts. */
#ifndef READFILE_H
#define READFILE_H

#include "host/emit.h"

/*
 * Emits a `file` line for each path: its content (base64, less than 4 MiB), or why
 * there is none. A path may hold a shell pattern: it stands for every match.
 */
enum exit_status readfile(char **paths, int count, struct emit *out);

#endif
