/* SPDX-License-Identifier: MIT */
/* descriptors: what is known of one that is closed, or of another file, when it is asked. */
#include "watch/descriptors.h"

#include "tests/check.h"

static struct timeline_record call(int fd, bool cannot_block)
{
	return (struct timeline_record){ .what = TIMELINE_CALL,
					 .fd = fd + 1,
					 .cannot_block = cannot_block };
}

static struct timeline_record changing(int fd, bool closes, bool nonblocking)
{
	return (struct timeline_record){ .what = TIMELINE_CALL,
					 .changes = fd + 1,
					 .closes = closes,
					 .nonblocking = nonblocking };
}

static struct timeline_record returned(int fd)
{
	return (struct timeline_record){ .what = TIMELINE_RETURN, .fd = fd + 1 };
}

static void what_was_asked_after_a_close_is_of_another_file(void)
{
	struct timeline_record r[] = { call(5, true), call(6, true),
				       changing(5, true, false), call(5, true) };

	descriptors_closed(r, 4);
	CHECK(r[0].gone && !r[0].cannot_block);
	CHECK(!r[1].gone && r[1].cannot_block);
	CHECK(!r[3].gone && r[3].cannot_block);
}

static void a_number_that_is_too_large_is_not_followed(void)
{
	struct timeline_record r[] = { call(DESCRIPTORS, true),
				       changing(DESCRIPTORS, true, false) };

	descriptors_closed(r, 2);
	CHECK(!r[0].gone && r[0].cannot_block);
}

static bool still_unknown;

/* Whether a call of a descriptor that is gone cannot block after these. */
static bool decided(struct timeline_record *before, unsigned int count)
{
	struct descriptors d = { .waiting = { 0 } };
	struct timeline_record r = call(5, false);
	struct descriptors_made makes = { .waiting = false };

	for (unsigned int i = 0; i < count; i++)
		descriptors_follow(&d, &makes, &before[i]);
	r.gone = true;
	descriptors_follow(&d, &makes, &r);
	CHECK(!r.gone || !r.cannot_block);
	still_unknown = r.gone;
	return r.cannot_block;
}

static void a_descriptor_is_as_it_was_made(void)
{
	struct timeline_record made[] = { changing(-1, false, true), returned(5),
					  changing(5, true, false), returned(0) };
	struct timeline_record plain[] = { changing(-1, false, false), returned(5) };
	struct timeline_record failed[] = { changing(-1, false, true), returned(-11) };
	struct timeline_record flags[] = { changing(5, false, true), returned(0),
					   changing(5, false, false), returned(0) };

	CHECK(decided(made, 2) && !decided(made, 4));
	CHECK(!decided(plain, 2) && !decided(failed, 2) && !decided(NULL, 0));
	CHECK(decided(flags, 2) && !decided(flags, 4) && still_unknown);
}

static void a_file_that_was_opened_waits(void)
{
	struct timeline_record opened[] = {
		{ .what = TIMELINE_CALL, .waits = true },
		returned(5),
		changing(5, true, false),
		returned(0),
	};

	CHECK(!decided(opened, 2) && !still_unknown);
	CHECK(!decided(opened, 4) && still_unknown);
}

int main(void)
{
	what_was_asked_after_a_close_is_of_another_file();
	a_number_that_is_too_large_is_not_followed();
	a_descriptor_is_as_it_was_made();
	a_file_that_was_opened_waits();
	return 0;
}
