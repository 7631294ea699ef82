/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "tests/captured.h"

static bool string_becomes(const char *bytes, size_t size, const char *expected)
{
	char line[256];

	capture();
	emit_begin(&out, "t");
	emit_bytes(&out, "s", bytes, size);
	snprintf(line, sizeof(line), "{\"type\":\"t\",\"s\":\"%s\"}\n", expected);
	return capture_is(line);
}

#define TEXT_BECOMES(text, expected) string_becomes(text, sizeof(text) - 1, expected)

static void a_line_is_an_object_with_its_type_first(void)
{
	capture();
	emit_begin(&out, "all");
	emit_int(&out, "i", -7);
	emit_bool(&out, "yes", true);
	emit_bool(&out, "no", false);
	emit_null(&out, "none");
	emit_open(&out, "list", '[');
	emit_int(&out, NULL, 1);
	emit_open(&out, NULL, '{');
	emit_text(&out, "a", "b");
	emit_close(&out, '}');
	emit_open(&out, NULL, '[');
	emit_close(&out, ']');
	emit_close(&out, ']');
	emit_int(&out, "last", 0);
	CHECK(capture_is(
		"{\"type\":\"all\",\"i\":-7,\"yes\":true,\"no\":false,\"none\":null,"
		"\"list\":[1,{\"a\":\"b\"},[]],\"last\":0}\n"));
}

static void a_second_line_begins_without_a_comma(void)
{
	capture();
	emit_begin(&out, "a");
	emit_end(&out);
	emit_begin(&out, "b");
	CHECK(capture_is("{\"type\":\"a\"}\n{\"type\":\"b\"}\n"));
}

static void a_line_that_may_wait_leaves_with_the_next(void)
{
	char byte;

	capture();
	emit_begin(&out, "a");
	emit_end_later(&out);
	CHECK(pread(out.fd, &byte, 1, 0) == 0);
	emit_begin(&out, "b");
	CHECK(capture_is("{\"type\":\"a\"}\n{\"type\":\"b\"}\n"));
}

static void text_that_would_not_come_out_as_it_is_can_be_asked_for(void)
{
	CHECK(emit_is_utf8("a\n\xc3\xa9", 4) && emit_is_utf8("", 0));
	CHECK(!emit_is_utf8("a\xc3", 2) && !emit_is_utf8("\xff", 1));
}

static void what_json_reserves_is_escaped(void)
{
	CHECK(TEXT_BECOMES("a\"b\\c/", "a\\\"b\\\\c/"));
	CHECK(TEXT_BECOMES("\n\t\x1b\x7f", "\\u000a\\u0009\\u001b\\u007f"));
	CHECK(TEXT_BECOMES("\0x", "\\u0000x"));
	CHECK(TEXT_BECOMES("", ""));
}

static void utf8_passes_unchanged(void)
{
	CHECK(TEXT_BECOMES("\xc3\xa9", "\xc3\xa9"));
	CHECK(TEXT_BECOMES("\xe2\x82\xac", "\xe2\x82\xac"));
	CHECK(TEXT_BECOMES("\xf0\x9f\x90\xa7", "\xf0\x9f\x90\xa7"));
	CHECK(TEXT_BECOMES("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"));
}

static void bytes_that_are_no_utf8_become_question_marks(void)
{
	CHECK(TEXT_BECOMES("\x80", "?"));
	CHECK(TEXT_BECOMES("\xff\xfe", "??"));
	CHECK(TEXT_BECOMES("a\xc3", "a?"));                   /* cut off */
	CHECK(TEXT_BECOMES("\xe2\x82", "??"));                /* cut off */
	CHECK(TEXT_BECOMES("\xc3z", "?z"));                   /* no continuation */
	CHECK(TEXT_BECOMES("\xc0\xaf", "??"));                /* overlong */
	CHECK(TEXT_BECOMES("\xe0\x80\xaf", "???"));           /* overlong */
	CHECK(TEXT_BECOMES("\xed\xa0\x80", "???"));           /* surrogate */
	CHECK(TEXT_BECOMES("\xf4\x90\x80\x80", "????"));      /* beyond Unicode */
	CHECK(TEXT_BECOMES("\xf0\x82\x82\xac", "????"));      /* overlong */
	CHECK(TEXT_BECOMES("\xf8\x88\x80\x80\x80", "?????")); /* five bytes */
}

static void integers_are_exact_to_their_limits(void)
{
	capture();
	emit_begin(&out, "t");
	emit_int(&out, "min", INT64_MIN);
	emit_int(&out, "max", INT64_MAX);
	emit_int(&out, "ten", 10);
	emit_int(&out, "minus", -1);
	CHECK(capture_is("{\"type\":\"t\",\"min\":-9223372036854775808,"
			 "\"max\":9223372036854775807,\"ten\":10,\"minus\":-1}\n"));
}

static void sums_of_128_bits_are_decimal_strings(void)
{
	const struct wide zero = { 0, 0 }, word = { UINT64_MAX, 0 }, two_64 = { 0, 1 };
	const struct wide all = { UINT64_MAX, UINT64_MAX };

	capture();
	emit_begin(&out, "t");
	emit_wide(&out, "zero", &zero);
	emit_wide(&out, "word", &word);
	emit_wide(&out, "two_64", &two_64);
	emit_wide(&out, "all", &all);
	CHECK(capture_is(
		"{\"type\":\"t\",\"zero\":\"0\",\"word\":\"18446744073709551615\","
		"\"two_64\":\"18446744073709551616\","
		"\"all\":\"340282366920938463463374607431768211455\"}\n"));
}

static void a_line_longer_than_the_buffer_leaves_complete(void)
{
	static char text[3 * sizeof(out.buffer)];
	const char *got;

	memset(text, 'x', sizeof(text));
	for (size_t shift = 0; shift < 20; shift++) {
		capture();
		emit_begin(&out, "t");
		emit_bytes(&out, "s", text, sizeof(out.buffer) - 10 + shift);
		emit_bytes(&out, "t", text, sizeof(text));
		got = capture_end();
		CHECK(strlen(got) ==
		      strlen("{\"type\":\"t\",\"s\":\"\",\"t\":\"\"}\n") +
			      sizeof(out.buffer) - 10 + shift + sizeof(text));
		CHECK(strcmp(got + strlen(got) - 4, "x\"}\n") == 0);
	}
}

static void a_full_disk_is_kept_as_the_error(void)
{
	emit_init(&out, open("/dev/full", O_WRONLY | O_CLOEXEC));
	CHECK(out.fd >= 0);
	emit_begin(&out, "t");
	CHECK(emit_end(&out) == -ENOSPC);
	emit_begin(&out, "t");
	CHECK(emit_end(&out) == -ENOSPC);
	CHECK(out.error == ENOSPC);
	close(out.fd);
}

static void a_reader_that_is_gone_is_kept_as_the_error(void)
{
	int ends[2];

	signal(SIGPIPE, SIG_IGN);
	CHECK(pipe(ends) == 0);
	close(ends[0]);
	emit_init(&out, ends[1]);
	CHECK(emit_ready(&out, 0)); /* ready to say that nobody reads */
	emit_begin(&out, "t");
	CHECK(emit_end(&out) == -EPIPE);
	close(ends[1]);

	/* the first error stays, also when another one would follow */
	emit_begin(&out, "t");
	CHECK(emit_end(&out) == -EPIPE);
}

static void a_full_pipe_is_not_ready(void)
{
	char bytes[4096] = { 0 };
	int ends[2];

	CHECK(pipe2(ends, O_NONBLOCK) == 0);
	emit_init(&out, ends[1]);
	CHECK(emit_ready(&out, 0));
	while (write(ends[1], bytes, sizeof(bytes)) > 0)
		;
	CHECK(!emit_ready(&out, 0));
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	a_line_is_an_object_with_its_type_first();
	a_second_line_begins_without_a_comma();
	a_line_that_may_wait_leaves_with_the_next();
	text_that_would_not_come_out_as_it_is_can_be_asked_for();
	what_json_reserves_is_escaped();
	utf8_passes_unchanged();
	bytes_that_are_no_utf8_become_question_marks();
	integers_are_exact_to_their_limits();
	sums_of_128_bits_are_decimal_strings();
	a_line_longer_than_the_buffer_leaves_complete();
	a_full_disk_is_kept_as_the_error();
	a_reader_that_is_gone_is_kept_as_the_error();
	a_full_pipe_is_not_ready();
	return 0;
}
