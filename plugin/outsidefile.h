/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outsidefile - the file with what the threads of a program did: format/program.md.
 *
 * Written through a buffer of its own. What exceeds the limit is counted, and not written.
 */
#ifndef OUTSIDEFILE_H
#define OUTSIDEFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

enum outside_kind {
	OUTSIDE_THREAD = 1,
	OUTSIDE_NAME = 2,
	OUTSIDE_RELEASE = 3,
	OUTSIDE_WAKE = 4,
	OUTSIDE_ACTIVATE = 5,
	OUTSIDE_IN = 6,
	OUTSIDE_OUT = 7,
	OUTSIDE_FIRST = 8,
	OUTSIDE_CALL = 9,
	OUTSIDE_RETURN = 10,
	OUTSIDE_FAULT = 11,
	OUTSIDE_HELD = 12,
	OUTSIDE_USED = 13,
	OUTSIDE_STACK = 14,
	OUTSIDE_EXIT = 15,
	OUTSIDE_FORK = 16,
	OUTSIDE_LOST = 17,
	OUTSIDE_ARGUMENTS = 18,
	OUTSIDE_ASKED = 19,
	OUTSIDE_DONE = 20,
	OUTSIDE_HOLD = 21,
};

/* Of the number of a call: a program of 32 bits made it. */
#define OUTSIDE_NARROW (1u << 29)

struct outside_record {
	uint64_t stamp; /* as in record.h */
	uint32_t thread;
	uint32_t detail;
	uint64_t value;
	uint64_t user;
};

/* Returns 0 or -errno. */
int outsidefile_init(const struct options *options, const char *arch);

/* Of the executing CPU, so many instructions before the end of the block. */
void outsidefile_put(enum outside_kind kind, unsigned int to_come,
		     const struct outside_record *record);

/* Behind a record whose detail says how many: all of them, or with it none. */
bool outsidefile_has_room(unsigned int records);
void outsidefile_put_payload(const void *payload, unsigned int records);

/* `kinds`: a bit for each kind that there can be. Returns whether all was written. */
bool outsidefile_end(uint32_t cpus, uint32_t kinds);

#endif
