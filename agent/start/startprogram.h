/* SPDX-License-Identifier: MIT */
/* startprogram - the file of a program: found as execvp() does, and why it cannot run. */
#ifndef STARTPROGRAM_H
#define STARTPROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* As env(1): the program is there and cannot be executed, or is not there. */
#define STARTPROGRAM_CANNOT  126
#define STARTPROGRAM_MISSING 127

/* The file that execvp() will take; false: there is none, and errno says why. */
bool startprogram_find(const char *name, char *path, size_t size);

/* Says why it was not executed, and returns the exit status of that. */
int startprogram_explain(const char *program, int err);

/* Whether the file is set-user-ID, set-group-ID or has capabilities: a traced process
 * gets none of them, unless its tracer has all rights. */
bool startprogram_has_rights(const char *path);

#endif
