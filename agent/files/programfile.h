/* SPDX-License-Identifier: MIT */
/* programfile - the file of a program: found as execvp() does, and why it cannot run. */
#ifndef PROGRAMFILE_H
#define PROGRAMFILE_H

#include <stdbool.h>
#include <stddef.h>

/* The file that execvp() will take; false: there is none, and errno says why. */
bool programfile_find(const char *name, char *path, size_t size);

struct programfile_cause {
	const char *why, *remedy; /* beside what errno says, and what to type; or "" */
};

/* Of err, got when it was to be executed. */
struct programfile_cause programfile_cause(const char *program, int err);

#endif
