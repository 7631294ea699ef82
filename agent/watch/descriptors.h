/* SPDX-License-Identifier: MIT */
/*
 * descriptors - what is known of descriptors that were closed, or closed and given to
 * another file, before their flags could be read: how a call made them, with O_NONBLOCK
 * or of a file without, if it was seen. Pure, of records in order of time.
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/timeline.h"

#define DESCRIPTORS 1024 /* numbers that are followed */

struct descriptors {
	uint64_t nonblocking[DESCRIPTORS / 64], waiting[DESCRIPTORS / 64];
};

/* What the call that a thread is in makes. */
struct descriptors_made {
	bool nonblocking, waiting;
};

/* Takes back what calls say of descriptors that are closed later in these records. */
void descriptors_closed(struct timeline_record *record, unsigned int count);

/* Decides a call whose descriptor is gone, by how that was made. `makes` is the thread's. */
void descriptors_follow(struct descriptors *d, struct descriptors_made *makes,
			struct timeline_record *r);

#endif
