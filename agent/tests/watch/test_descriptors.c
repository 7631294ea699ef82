/* SPDX-License-Identifier: MIT */
/* descriptors: what is known of one that is closed, copied, changed, or of another file,
 * when it is asked. */
#include "watch/descriptors.h"

#include "tests/check.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static struct timeline_record call(int fd, bool cannot_block)
{
	return (struct timeline_record){ .what = TIMELINE_CALL,
					 .fd = fd + 1,
					 .by_flags = true,
					 .cannot_block = cannot_block };
}

static struct timeline_record doing(struct timeline_numbers numbers)
{
	return (struct timeline_record){ .what = TIMELINE_CALL, .numbers = numbers };
}

static struct timeline_record closing(int fd, int to)
{
	return doing(
		(struct timeline_numbers){ .closes = fd + 1, .closes_to = to + 1 });
}

static uint8_t as(bool nonblocking)
{
	return nonblocking ? NUMBER_NONBLOCKING : NUMBER_WAITS;
}

static struct timeline_record setting(int fd, bool nonblocking)
{
	return doing(
		(struct timeline_numbers){ .sets = fd + 1, .is = as(nonblocking) });
}

static struct timeline_record setting_from_memory(int fd)
{
	return doing((struct timeline_numbers){ .sets = fd + 1, .from_memory = true });
}

static struct timeline_record making(bool nonblocking)
{
	return doing((struct timeline_numbers){ .makes = true, .is = as(nonblocking) });
}

static struct timeline_record copying(int fd)
{
	return doing((struct timeline_numbers){ .copies = fd + 1 });
}

static struct timeline_record returned(int fd)
{
	return (struct timeline_record){ .what = TIMELINE_RETURN, .fd = fd + 1 };
}

static const struct descriptors nothing = { .newest = 0 };

static void what_was_asked_after_a_close_is_of_another_file(void)
{
	struct timeline_record r[] = { call(5, true), call(6, true), closing(5, 5),
				       call(5, true) };

	descriptors_look_back(&nothing, r, COUNT(r));
	CHECK(r[0].gone && !r[0].cannot_block);
	CHECK(!r[1].gone && r[1].cannot_block);
	CHECK(!r[3].gone && r[3].cannot_block);
}

static void a_range_is_closed_whole(void)
{
	struct timeline_record r[] = { call(4, true), call(5, true), call(70, true),
				       call(71, true), closing(5, 70) };
	struct timeline_record all[] = { call(2, true), call(3, true),
					 closing(3, INT32_MAX - 1) };

	descriptors_look_back(&nothing, r, COUNT(r));
	CHECK(!r[0].gone && r[1].gone && r[2].gone && !r[3].gone);
	descriptors_look_back(&nothing, all, COUNT(all));
	CHECK(!all[0].gone && all[1].gone);
}

static void a_number_that_is_too_large_is_not_followed(void)
{
	struct timeline_record r[] = { call(DESCRIPTORS, true),
				       closing(DESCRIPTORS, DESCRIPTORS) };

	descriptors_look_back(&nothing, r, COUNT(r));
	CHECK(!r[0].gone && r[0].cannot_block);
}

static void flags_that_were_asked_after_a_change_are_not_those_of_the_call(void)
{
	struct timeline_record r[] = { call(5, false), call(6, false),
				       setting(5, false), call(5, false) };
	struct timeline_record file[] = { call(5, false), setting(5, true) };

	descriptors_look_back(&nothing, r, COUNT(r));
	CHECK(r[0].gone && !r[1].gone && !r[3].gone);
	file[0].by_flags = false;
	descriptors_look_back(&nothing, file, COUNT(file));
	CHECK(!file[0].gone);
}

static void a_change_is_one_of_each_number_of_the_file(void)
{
	struct timeline_record r[] = { copying(5), returned(7), call(5, false),
				       call(6, false), setting(7, false) };

	descriptors_look_back(&nothing, r, COUNT(r));
	CHECK(r[2].gone && !r[3].gone);
}

static void a_change_of_another_file_is_none(void)
{
	struct timeline_record r[] = { copying(5), returned(7), call(5, true),
				       setting(8, false) };

	r[0].numbers.is = NUMBER_NONBLOCKING;
	descriptors_look_back(&nothing, r, COUNT(r));
	CHECK(!r[2].gone && r[0].numbers.is);
}

static bool still_unknown;

/* Whether a call of a descriptor that is gone cannot block after these. */
static bool decided(struct timeline_record *before, unsigned int count)
{
	struct descriptors d = { .newest = 0 };
	struct timeline_record r = call(5, false);
	struct descriptors_made made = { .makes = false };

	for (unsigned int i = 0; i < count; i++)
		descriptors_follow(&d, &made, &before[i]);
	r.gone = true;
	descriptors_follow(&d, &made, &r);
	CHECK(!r.gone || !r.cannot_block);
	still_unknown = r.gone;
	return r.cannot_block;
}

static void a_descriptor_is_as_it_was_made(void)
{
	struct timeline_record made[] = { making(true), returned(5), closing(5, 5),
					  returned(0) };
	struct timeline_record plain[] = { making(false), returned(5) };
	struct timeline_record failed[] = { making(true), returned(-11) };
	struct timeline_record other[] = { making(true), returned(5), closing(4, 6),
					   returned(0) };

	CHECK(decided(made, 2) && !decided(made, 4) && still_unknown);
	CHECK(!decided(plain, 2) && !still_unknown);
	CHECK(!decided(failed, 2) && still_unknown && !decided(NULL, 0));
	CHECK(!decided(other, 4) && still_unknown);
}

static void a_descriptor_is_as_its_flags_were_set(void)
{
	struct timeline_record r[] = { setting(5, true),      returned(0),
				       setting(5, false),     returned(0),
				       setting(5, true),      returned(0),
				       setting_from_memory(5) };

	CHECK(decided(r, 2));
	CHECK(!decided(r, 4) && !still_unknown);
	CHECK(decided(r, 6));
	CHECK(!decided(r, 7) && still_unknown);
}

static void set_from_memory(struct descriptors *d, bool nonblocking, bool waits)
{
	struct timeline_record r = setting_from_memory(5), used = call(5, false);
	struct timeline_record sample = setting(5, true);
	struct descriptors_made made = { .makes = false };

	descriptors_learn(d, &sample); /* not from memory */
	sample = setting_from_memory(5);
	descriptors_learn(d, &sample); /* not copied */
	sample.numbers.is = NUMBER_NONBLOCKING;
	if (nonblocking)
		descriptors_learn(d, &sample);
	sample.numbers.is = NUMBER_WAITS;
	if (waits)
		descriptors_learn(d, &sample);
	descriptors_follow(d, &made, &r);
	used.gone = true;
	descriptors_follow(d, &made, &used);
	CHECK(used.cannot_block == (nonblocking && !waits));
	CHECK(used.gone == (nonblocking == waits));
}

static void flags_that_are_always_set_alike_are_known_by_the_samples(void)
{
	struct descriptors on = nothing, off = nothing, both = nothing, none = nothing;

	set_from_memory(&on, true, false);
	set_from_memory(&off, false, true);
	set_from_memory(&both, true, true);
	set_from_memory(&none, false, false);
}

static void a_file_that_was_opened_waits(void)
{
	struct timeline_record opened[] = {
		doing((struct timeline_numbers){ .makes = true,
						 .is = NUMBER_WAITS | NUMBER_OF_FILE }),
		returned(5),
		setting(5, true),
	};

	CHECK(!decided(opened, 2) && !still_unknown);
	CHECK(!decided(opened, 3) && still_unknown); /* it may be a terminal */
}

static void a_copy_is_as_its_source(void)
{
	struct timeline_record r[] = { making(true), returned(3), copying(3),
				       returned(5), setting(3, false) };
	struct timeline_record asked[] = { copying(3), returned(5), closing(5, 5),
					   returned(0) };

	CHECK(decided(r, 4));
	CHECK(!decided(r, 5) && !still_unknown);
	CHECK(!decided(asked, 2) && still_unknown);
	asked[0].numbers.is = NUMBER_NONBLOCKING;
	CHECK(decided(asked, 2) && !decided(asked, 4) && still_unknown);
	asked[0].numbers.closes = asked[0].numbers.closes_to = 6; /* dup2 */
	CHECK(decided(asked, 2));
}

static void what_a_copy_was_asked_after_a_change_is_taken_back(void)
{
	struct timeline_record r[] = { copying(3), setting(3, false) };

	r[0].numbers.is = NUMBER_NONBLOCKING;
	descriptors_look_back(&nothing, r, COUNT(r));
	CHECK(!r[0].numbers.is && !r[0].gone);
}

static void copies_are_told_apart_for_ever(void)
{
	static struct descriptors d;
	struct descriptors_made made = { .makes = false };

	d.same[900] = 1;
	for (unsigned int i = 0; i < 70000; i++) {
		struct timeline_record r[] = { copying(3), returned(5), closing(3, 3) };

		for (unsigned int n = 0; n < COUNT(r); n++)
			descriptors_follow(&d, &made, &r[n]);
		CHECK(d.same[5]);
	}
	CHECK(!d.same[900]);
}

int main(void)
{
	what_was_asked_after_a_close_is_of_another_file();
	a_range_is_closed_whole();
	a_number_that_is_too_large_is_not_followed();
	flags_that_were_asked_after_a_change_are_not_those_of_the_call();
	a_change_is_one_of_each_number_of_the_file();
	a_change_of_another_file_is_none();
	a_descriptor_is_as_it_was_made();
	a_descriptor_is_as_its_flags_were_set();
	flags_that_are_always_set_alike_are_known_by_the_samples();
	a_file_that_was_opened_waits();
	a_copy_is_as_its_source();
	what_a_copy_was_asked_after_a_change_is_taken_back();
	copies_are_told_apart_for_ever();
	return 0;
}
