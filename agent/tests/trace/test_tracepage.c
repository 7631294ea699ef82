/* SPDX-License-Identifier: MIT */
/* tracepage on pages made by hand: the time they cover, gaps, and damage. */
#include <errno.h>

#include "tests/tracepages.h"

static unsigned char page[PAGE_BYTES];
static struct tracepage_span span;

static int span_of_page(void)
{
	const struct tracepage_layout layout = layout_of_tests();

	return tracepage_span(&layout, page, &span);
}

static void the_layout_is_read_from_the_kernels_own_words(void)
{
	const char narrow[] =
		"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		"\tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield: char data;\toffset:12;\tsize:4084;\tsigned:1;\n";
	struct tracepage_layout layout = layout_of_tests();

	CHECK(layout.commit_at == 8 && layout.commit_size == 8);
	CHECK(layout.data_at == 16 && layout.page_size == 256);
	CHECK(tracepage_layout(narrow, &layout) == 0);
	CHECK(layout.commit_size == 4 && layout.data_at == 12);
	CHECK(layout.page_size == 4096);
}

static void a_layout_that_is_not_known_is_refused(void)
{
	struct tracepage_layout layout;

	CHECK(tracepage_layout("", &layout) == -EINVAL);
	CHECK(tracepage_layout(" timestamp; offset:0; size:8;\n commit; offset:8; "
			       "size:8;\n data; offset:16; size:99999999;\n",
			       &layout) == -EINVAL);
	CHECK(tracepage_layout(" timestamp; offset:0; size:8;\n commit; offset:8; "
			       "size:8;\n data; offset:8; size:4080;\n",
			       &layout) == -EINVAL);
	CHECK(tracepage_layout(" timestamp; offset:4294967290; size:8;\n commit; "
			       "offset:8; size:8;\n data; offset:16; size:4080;\n",
			       &layout) == -EINVAL);
}

static void deltas_add_up_to_the_time_of_the_last_event(void)
{
	begin_page(page, 1000);
	put_event(page, 2, 0, 0, 12);   /* two words of data, at 1000 */
	put_event(page, 1, 7, 0, 8);    /* one word, at 1007 */
	put_event(page, 30, 5, 2, 8);   /* 2 << 27, and 5 */
	put_event(page, 0, 11, 12, 16); /* its length follows: 12 with itself */

	CHECK(span_of_page() == 0);
	CHECK(span.first_ns == 1000);
	CHECK(span.last_ns == 1007 + (2 << 27) + 5 + 11);
	CHECK(span.events == 3);
	CHECK(!span.missed);
}

static void an_absolute_time_replaces_the_sum(void)
{
	begin_page(page, (UINT64_C(1) << 59) + 9);
	put_event(page, 31, 3, 4, 8); /* 4 << 27 | 3, the top bits as before */
	put_event(page, 1, 1, 0, 8);

	CHECK(span_of_page() == 0);
	CHECK(span.last_ns == (INT64_C(1) << 59) + (4 << 27) + 3 + 1);
}

static void padding_is_no_event_but_takes_its_time(void)
{
	begin_page(page, 100);
	put_event(page, 29, 6, 8, 12); /* an event that was discarded */
	put_event(page, 1, 1, 0, 8);
	put_event(page, 29, 0, 0, 4); /* the rest is empty */

	CHECK(span_of_page() == 0);
	CHECK(span.last_ns == 107);
	CHECK(span.events == 1);
}

static void a_page_after_a_loss_says_so(void)
{
	begin_page(page, 100);
	put_event(page, 1, 1, 0, 8);
	set_commit(page, commit_of(page) | UINT64_C(1) << 31 | UINT64_C(1) << 30);

	CHECK(span_of_page() == 0);
	CHECK(span.missed);
	CHECK(span.events == 1);
}

static void an_empty_page_covers_a_moment(void)
{
	begin_page(page, 100);

	CHECK(span_of_page() == 0);
	CHECK(span.first_ns == 100 && span.last_ns == 100 && span.events == 0);
}

static void a_damaged_page_is_refused_and_not_read_beyond(void)
{
	begin_page(page, 100);
	set_commit(page, 241); /* beyond the page */
	CHECK(span_of_page() == -EINVAL);

	set_commit(page, 244);
	CHECK(span_of_page() == -EINVAL);

	begin_page(page, 100);
	put_event(page, 28, 1, 0, 8); /* longer than what is left */
	CHECK(span_of_page() == -EINVAL);

	begin_page(page, 100);
	put_event(page, 0, 1, 4000, 8);
	CHECK(span_of_page() == -EINVAL);

	begin_page(page, 100);
	put_event(page, 30, 1, 0, 4); /* a time without its second word */
	CHECK(span_of_page() == -EINVAL);

	begin_page(page, 100);
	put_event(page, 29, 1, 5, 12); /* its end is within a word */
	page[16 + 9] = 29;
	CHECK(span_of_page() == -EINVAL);
}

/* Marsaglia's xorshift: the same bytes on each machine. */
static uint32_t drawn(void)
{
	static uint32_t state = 20261122;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

static void mutated_pages_are_read_or_refused(void)
{
	for (unsigned int i = 0; i < 100000; i++) {
		int status;

		begin_page(page, 1000);
		put_event(page, 2, 0, 0, 12);
		put_event(page, 30, 5, 2, 8);
		put_event(page, 0, 11, 12, 16);
		put_event(page, 29, 1, 5, 8);
		put_event(page, 1, 7, 0, 8);
		for (unsigned int n = 1 + drawn() % 4; n > 0; n--)
			page[drawn() % (drawn() % 2 ? 72 : PAGE_BYTES)] = drawn() >> 8;

		status = span_of_page();
		CHECK(status == 0 || status == -EINVAL);
		CHECK(status || span.events <= PAGE_BYTES / 4);
	}
}

int main(void)
{
	the_layout_is_read_from_the_kernels_own_words();
	a_layout_that_is_not_known_is_refused();
	deltas_add_up_to_the_time_of_the_last_event();
	an_absolute_time_replaces_the_sum();
	padding_is_no_event_but_takes_its_time();
	a_page_after_a_loss_says_so();
	an_empty_page_covers_a_moment();
	a_damaged_page_is_refused_and_not_read_beyond();
	mutated_pages_are_read_or_refused();
	return 0;
}
