/* SPDX-License-Identifier: MIT */
/*
 * knob - the closed list of settings that rtscope may change on a machine.
 *
 * A knob is a name, a place and a rule for its values. `root` is "" for the real machine
 * and a directory in the tests.
 */
#ifndef KNOB_H
#define KNOB_H

#include <stdbool.h>
#include <stddef.h>

#define KNOB_VALUE_MAX 64

struct knob_place {
	const char *root;
	const char *name;
	int index; /* the CPU, or the process that made a cgroup; 0 where there is none */
};

bool knob_known(const char *name);
bool knob_value_ok(const char *value);

/* Whether the knob is one file per CPU. */
bool knob_is_per_cpu(const char *name);

/* All return 0 or -errno. knob_write() reads back and gives -EIO if it did not hold. */
int knob_read(const struct knob_place *place, char value[KNOB_VALUE_MAX]);
int knob_write(const struct knob_place *place, const char *value);

#endif
