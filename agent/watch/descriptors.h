/* SPDX-License-Identifier: MIT */
/*
 * descriptors - what is known of descriptors that were closed, given to another file or
 * whose flags were changed before they could be read: how calls made, copied and set
 * them, if they were seen. Pure, of records in order of time.
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "watch/timeline.h"

#define DESCRIPTORS 4096 /* numbers that are followed */

struct descriptors {
	uint8_t is[DESCRIPTORS];
	uint16_t same[DESCRIPTORS]; /* equal, and not 0: they share their flags */
	uint16_t newest;            /* of these */
	uint8_t switched;           /* to, by calls whose memory was copied */
};

/* What the call that a thread is in makes. */
struct descriptors_made {
	bool makes;
	uint8_t is;
	uint16_t same;
};

/* Takes back what was read of descriptors that are closed, or whose flags are set, later in
 * these records. */
void descriptors_look_back(const struct descriptors *d, struct timeline_record *record,
			   unsigned int count);

/* Of a sample, which has a copy of memory: calls that have none are taken for the same. */
void descriptors_learn(struct descriptors *d, const struct timeline_record *r);

/* Decides a call whose descriptor is gone, by how that was made. `made` is the thread's. */
void descriptors_follow(struct descriptors *d, struct descriptors_made *made,
			struct timeline_record *r);

#endif
