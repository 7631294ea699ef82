/* SPDX-License-Identifier: MIT */
#include "watch/descriptors.h"

static bool has(const struct descriptors *d, int fd)
{
	return fd >= 0 && fd < DESCRIPTORS &&
	       d->nonblocking[fd / 64] & UINT64_C(1) << fd % 64;
}

static void set(struct descriptors *d, int fd, bool is)
{
	const uint64_t bit = UINT64_C(1) << (fd & 63);

	if (fd < 0 || fd >= DESCRIPTORS)
		return;
	if (is)
		d->nonblocking[fd / 64] |= bit;
	else
		d->nonblocking[fd / 64] &= ~bit;
}

void descriptors_closed(struct timeline_record *record, unsigned int count)
{
	struct descriptors closed = { { 0 } };

	while (count--) {
		struct timeline_record *r = &record[count];

		if (r->what != TIMELINE_CALL)
			continue;
		if (r->closes) {
			set(&closed, r->changes - 1, true);
		} else if (r->fd && has(&closed, r->fd - 1)) {
			r->gone = true;
			r->cannot_block = false;
		}
	}
}

void descriptors_follow(struct descriptors *d, bool *makes, struct timeline_record *r)
{
	if (r->what == TIMELINE_CALL) {
		*makes = r->nonblocking && !r->changes;
		if (r->changes)
			set(d, r->changes - 1, r->nonblocking);
		if (r->gone && has(d, r->fd - 1)) {
			r->gone = false;
			r->cannot_block = true;
		}
	} else if (r->what == TIMELINE_RETURN) {
		if (*makes)
			set(d, r->fd - 1, true);
		*makes = false;
	}
}
