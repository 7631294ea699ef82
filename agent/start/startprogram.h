/* SPDX-License-Identifier: MIT */
/* startprogram - says why a program cannot run, and which rights its file has. */
#ifndef STARTPROGRAM_H
#define STARTPROGRAM_H

#include <stdbool.h>

/* As env(1): the program is there and cannot be executed, or is not there. */
#define STARTPROGRAM_CANNOT  126
#define STARTPROGRAM_MISSING 127

/* Says why it was not executed, err, and returns the exit status of that. */
int startprogram_explain(const char *program, int err);

/* Whether the file is set-user-ID, set-group-ID or has capabilities: a traced process
 * gets none of them, unless its tracer has all rights. */
bool startprogram_has_rights(const char *path);

#endif
