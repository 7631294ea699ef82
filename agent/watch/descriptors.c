/* SPDX-License-Identifier: MIT */
#include "watch/descriptors.h"

typedef uint64_t numbers[DESCRIPTORS / 64];

static bool has(const numbers n, int fd)
{
	return fd >= 0 && fd < DESCRIPTORS && n[fd / 64] & UINT64_C(1) << fd % 64;
}

static void set(numbers n, int fd, bool is)
{
	const uint64_t bit = UINT64_C(1) << (fd & 63);

	if (fd < 0 || fd >= DESCRIPTORS)
		return;
	if (is)
		n[fd / 64] |= bit;
	else
		n[fd / 64] &= ~bit;
}

void descriptors_closed(struct timeline_record *record, unsigned int count)
{
	numbers closed = { 0 };

	while (count--) {
		struct timeline_record *r = &record[count];

		if (r->what != TIMELINE_CALL)
			continue;
		if (r->closes) {
			set(closed, r->changes - 1, true);
		} else if (r->fd && has(closed, r->fd - 1)) {
			r->gone = true;
			r->cannot_block = false;
		}
	}
}

static void know(struct descriptors *d, int fd, struct descriptors_made is)
{
	set(d->nonblocking, fd, is.nonblocking);
	set(d->waiting, fd, is.waiting);
}

void descriptors_follow(struct descriptors *d, struct descriptors_made *makes,
			struct timeline_record *r)
{
	const struct descriptors_made is = { r->nonblocking, r->waits };

	if (r->what == TIMELINE_RETURN) {
		if (makes->nonblocking || makes->waiting)
			know(d, r->fd - 1, *makes);
		*makes = (struct descriptors_made){ .waiting = false };
	} else if (r->what == TIMELINE_CALL) {
		*makes = (struct descriptors_made){ .waiting = false };
		if (r->changes)
			know(d, r->changes - 1, is);
		else
			*makes = is;
		if (r->gone && has(d->nonblocking, r->fd - 1))
			r->cannot_block = true;
		r->gone = r->gone && !r->cannot_block && !has(d->waiting, r->fd - 1);
	}
}
