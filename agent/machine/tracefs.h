/* SPDX-License-Identifier: MIT */
/*
 * tracefs - the kernel's tracing directory, and an instance of our own in it.
 *
 * Where tracefs is not mounted it is mounted in a mount namespace of this process alone:
 * nobody else sees it, and it ends with the process, also by SIGKILL. The instance does
 * not: it is made and removed through the journal, as a knob (see knob.c), and named
 * after the process that made it. `root` is "" for the real machine.
 */
#ifndef TRACEFS_H
#define TRACEFS_H

#include <stddef.h>

#define TRACEFS_PATH 160

/* Why there is no trace, for the result. */
struct tracefs_refusal {
	const char *cause; /* a word of the contract; NULL: not refused */
	const char *remedy;
	char what[192];
};

/*
 * Writes the path of tracefs, which it mounts if need be. Returns 0 or -errno: -EACCES
 * and -EPERM for a missing right, -ENODEV where the kernel has no tracing, -EKEYREJECTED
 * where lockdown forbids it.
 */
int tracefs_find(const char *root, char path[TRACEFS_PATH]);

/* Says in words what tracefs_find() or the making of the instance met. */
void tracefs_explain(const char *root, int err, struct tracefs_refusal *out);

/* The path of the instance of the process `owner`. Returns 0 or -errno. */
int tracefs_instance(const char *root, int owner, char path[TRACEFS_PATH]);

/* 1 or 0, or -errno where nobody can tell: tracefs may be out of reach. */
int tracefs_instance_exists(const char *root, int owner);
int tracefs_instance_make(const char *root, int owner);

/* Switches it off and removes it; 0 also when there is none. */
int tracefs_instance_remove(const char *root, int owner);

/* Writes a file below a directory of tracefs. Returns 0 or -errno. */
int tracefs_write(const char *directory, const char *name, const char *value);

#endif
