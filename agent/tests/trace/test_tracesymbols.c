/* SPDX-License-Identifier: MIT */
/* tracesymbols: the functions that words of a page lie in, and no others. */
#include "trace/tracesymbols.h"

#include <errno.h>
#include <string.h>

#include "tests/check.h"

static char text[] = "ffffffff81000000 T _stext\n"
		     "ffffffff81000400 t idle\n"
		     "ffffffff82000000 D data_not_code\n"
		     "ffffffff81000200 T hrtimer_wakeup\n"
		     "0000000000000100 A absolute\n"
		     "ffffffffc0000000 t in_module\t[m]\n";

static const char *written_for(const void *bytes, size_t size, unsigned int word,
			       int offsets)
{
	static char out[512];
	struct tracesymbols s;
	size_t n;

	CHECK(tracesymbols_init(&s, text) == 0);
	tracesymbols_mark(&s, bytes, size, word, offsets);
	n = tracesymbols_write(&s, NULL);
	CHECK(n < sizeof(out));
	CHECK(tracesymbols_write(&s, out) == n);
	out[n] = '\0';
	tracesymbols_free(&s);
	return out;
}

static void a_word_names_the_function_that_it_lies_in(void)
{
	const uint64_t words[] = { UINT64_C(0xffffffff810003ff), 7,
				   UINT64_C(0xffffffffc0000010) };

	CHECK(strcmp(written_for(words, sizeof(words), 8, 0),
		     "ffffffff81000000 T _stext\n"
		     "ffffffff81000200 T hrtimer_wakeup\n"
		     "ffffffffc0000000 t in_module\t[m]\n") == 0);
}

static void a_word_at_four_bytes_counts_too(void)
{
	const uint32_t words[] = { 1, 0x81000400, 0xffffffff };

	CHECK(strstr(written_for(words, sizeof(words), 8, 0), "idle"));
}

static void words_far_from_any_function_name_none(void)
{
	const uint64_t words[] = { UINT64_C(0xffffffff90000000), 5,
				   UINT64_C(0xffff888000000000),
				   UINT64_C(0xfffffffff0000000) };

	CHECK(strcmp(written_for(words, sizeof(words), 8, 0),
		     "ffffffff81000000 T _stext\n") == 0);
}

static void offsets_count_from_the_start_of_the_text(void)
{
	const uint32_t words[] = { 0x201 };

	CHECK(strstr(written_for(words, sizeof(words), 8, 1), "hrtimer_wakeup"));
	CHECK(!strstr(written_for(words, sizeof(words), 8, 0), "hrtimer_wakeup"));
}

static void hidden_addresses_are_no_symbols(void)
{
	char hidden[] = "0000000000000000 T _stext\n0000000000000000 t idle\n";
	char empty[] = "";
	struct tracesymbols s;

	CHECK(tracesymbols_init(&s, hidden) == -ENOENT);
	CHECK(tracesymbols_init(&s, empty) == -ENOENT);
}

int main(void)
{
	a_word_names_the_function_that_it_lies_in();
	a_word_at_four_bytes_counts_too();
	words_far_from_any_function_name_none();
	offsets_count_from_the_start_of_the_text();
	hidden_addresses_are_no_symbols();
	return 0;
}
