/* SPDX-License-Identifier: MIT */
/*
 * knob - the closed list of settings that rtscope may change on a machine.
 *
 * A knob is a name, a place and a rule for its values. `root` is "" for the real machine
 * and a directory in the tests.
 */
#ifndef KNOB_H
#define KNOB_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define KNOB_NAME_MAX     32
#define KNOB_VALUE_MAX    256 /* a mask of 900 CPUs */
#define KNOB_DEBUGFS      "/sys/kernel/debug"
#define KNOB_DID_NOT_HOLD (-EBADMSG)    /* no file of a knob gives it by itself */
#define KNOB_GONE         (-EOWNERDEAD) /* the same: what has the setting is no more */

/* A file of a CPU's idle state: the index is the state times this, plus the CPU. */
#define KNOB_STRIDE 4096

struct knob_place {
	const char *root;
	const char *name;
	int index; /* of the CPU, interrupt, frequency policy, interface, thread, or
		    * process that made something; 0 where there is none */
};

bool knob_known(const char *name);
bool knob_value_ok(const char *value);

/* Whether the knob is one file per CPU. */
bool knob_is_per_cpu(const char *name);

/* Its file, without the root. 0, or -EINVAL for a knob that is none. */
int knob_path(const struct knob_place *place, char *path, size_t size);

/* Both return 0 or -errno: KNOB_GONE where there is no such interface or thread.
 * knob_write() reads back and says if it did not hold. */
int knob_read(const struct knob_place *place, char value[KNOB_VALUE_MAX]);
int knob_write(const struct knob_place *place, const char *value);

#endif
