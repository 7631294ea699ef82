/* SPDX-License-Identifier: MIT */
#include "watch/descriptors.h"

#include <string.h>

#define EITHER (NUMBER_NONBLOCKING | NUMBER_WAITS)

static bool is_followed(int fd)
{
	return fd >= 0 && fd < DESCRIPTORS;
}

/* --- what is read later --------------------------------------------------------------- */

enum { CLOSED = 1, CHANGED = 2, COPIED = 4, RETURNED = 8 };

/* Whether what was read of a descriptor is of another file, or of other flags. */
static bool is_outdated(const struct timeline_record *r, uint8_t later, bool shared,
			bool changes)
{
	return later & CLOSED || ((r->by_flags || r->numbers.copies) &&
				  (later & CHANGED || (shared && changes)));
}

static void take_back(struct timeline_record *r)
{
	if (r->fd) {
		r->gone = true;
		r->cannot_block = false;
	} else {
		r->numbers.is = 0;
	}
}

/* Numbers that are copied, or may be copies, in these records. */
static void find_copies(uint8_t of[DESCRIPTORS], const struct timeline_record *record,
			unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		const bool returns = record[i].what == TIMELINE_RETURN;
		const int fd = (returns ? record[i].fd : record[i].numbers.copies) - 1;

		if (is_followed(fd))
			of[fd] |= returns ? RETURNED : COPIED;
	}
}

static void look_later(uint8_t later[DESCRIPTORS], const struct timeline_numbers *n)
{
	for (int at = n->closes; at && at <= n->closes_to && at <= DESCRIPTORS; at++)
		later[at - 1] |= CLOSED;
	if (is_followed(n->sets - 1))
		later[n->sets - 1] |= CHANGED;
}

void descriptors_look_back(const struct descriptors *d, struct timeline_record *record,
			   unsigned int count)
{
	uint8_t later[DESCRIPTORS] = { 0 };
	bool changes = false; /* of the flags of what has more numbers than one */

	find_copies(later, record, count);
	while (count--) {
		struct timeline_record *r = &record[count];
		const int sets = r->numbers.sets - 1;
		const int fd = (r->fd ? r->fd : r->numbers.copies) - 1;

		if (r->what != TIMELINE_CALL)
			continue;
		if (is_followed(fd) &&
		    is_outdated(r, later[fd], later[fd] & COPIED || d->same[fd],
				changes))
			take_back(r);
		look_later(later, &r->numbers);
		if (is_followed(sets) &&
		    (later[sets] & (COPIED | RETURNED) || d->same[sets]))
			changes = true;
	}
}

/* --- as calls made them --------------------------------------------------------------- */

static void know(struct descriptors *d, int fd, struct descriptors_made made)
{
	if (!is_followed(fd))
		return;
	d->is[fd] = made.is;
	d->same[fd] = made.same;
}

static void set_flags(struct descriptors *d, const struct timeline_numbers *n)
{
	const int fd = n->sets - 1;
	const uint8_t is = n->from_memory ? d->switched : n->is;

	for (int at = 0; is_followed(fd) && at < DESCRIPTORS; at++) {
		if (at != fd && (!d->same[at] || d->same[at] != d->same[fd]))
			continue;
		d->is[at] = (d->is[at] & NUMBER_OF_FILE) | (is == EITHER ? 0 : is);
		/* it may be a terminal that was opened */
		if (d->is[at] == (NUMBER_OF_FILE | NUMBER_NONBLOCKING))
			d->is[at] = NUMBER_OF_FILE;
	}
}

void descriptors_learn(struct descriptors *d, const struct timeline_record *r)
{
	if (r->numbers.from_memory)
		d->switched |= r->numbers.is;
}

static struct descriptors_made copy(struct descriptors *d,
				    const struct timeline_numbers *n)
{
	const int fd = n->copies - 1;
	struct descriptors_made made = { .makes = true, .is = n->is };

	if (!is_followed(fd))
		return made;
	if (!made.is)
		made.is = d->is[fd];
	if (!d->same[fd] && ++d->newest == 0) {
		memset(d->same, 0, sizeof(d->same));
		d->newest++;
	}
	if (!d->same[fd])
		d->same[fd] = d->newest;
	made.same = d->same[fd];
	return made;
}

static void follow_call(struct descriptors *d, struct descriptors_made *made,
			const struct timeline_numbers *n)
{
	const struct descriptors_made unknown = { .makes = false };

	if (n->copies)
		*made = copy(d, n);
	else
		*made = (struct descriptors_made){ n->makes, n->is, 0 };
	for (int at = n->closes; at && at <= n->closes_to && at <= DESCRIPTORS; at++)
		know(d, at - 1, unknown);
	if (n->sets)
		set_flags(d, n);
}

void descriptors_follow(struct descriptors *d, struct descriptors_made *made,
			struct timeline_record *r)
{
	if (r->what == TIMELINE_RETURN) {
		if (made->makes)
			know(d, r->fd - 1, *made);
		made->makes = false;
	} else if (r->what == TIMELINE_CALL) {
		follow_call(d, made, &r->numbers);
		if (r->gone && is_followed(r->fd - 1)) {
			r->cannot_block = d->is[r->fd - 1] & NUMBER_NONBLOCKING;
			r->gone = !(d->is[r->fd - 1] & EITHER);
		}
	}
}
