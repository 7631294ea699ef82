/* SPDX-License-Identifier: MIT */
/* Settings as text alone: a machine may have no serial line, or one that is in use. */
#include "journal/serialline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>

#include "journal/knob.h"
#include "tests/check.h"

/* As a line has them after boot: 9,600 bit/s, cooked. */
static void say_cooked(char *text, size_t size)
{
	size_t used = (size_t)snprintf(text, size, "%x.%x.%x.%x.0.%x.%x.0.",
				       (unsigned int)(ICRNL | IXON),
				       (unsigned int)(OPOST | ONLCR),
				       (unsigned int)(B9600 | CS8 | CREAD | HUPCL),
				       (unsigned int)(ISIG | ICANON | ECHO),
				       (unsigned int)B9600, (unsigned int)B9600);

	for (unsigned int i = 0; i < NCCS; i++)
		used += (size_t)snprintf(text + used, size - used, "%02x", i);
	CHECK(used < size);
}

static void a_raw_line_differs_from_the_one_before_and_fits_the_journal(void)
{
	char cooked[KNOB_VALUE_MAX], raw[KNOB_VALUE_MAX], again[KNOB_VALUE_MAX];

	say_cooked(cooked, sizeof(cooked));
	CHECK(knob_value_ok(cooked));
	CHECK(serialline_raw(cooked, true, raw, sizeof(raw)) == 0);
	CHECK(knob_value_ok(raw));
	CHECK(strcmp(raw, cooked) != 0);
	CHECK(serialline_raw(raw, true, again, sizeof(again)) == 0);
	CHECK(strcmp(again, raw) == 0);
	CHECK(serialline_raw(raw, false, again, sizeof(again)) == 0);
	CHECK(strcmp(again, raw) != 0);
}

static void what_is_no_line_is_refused(void)
{
	char raw[KNOB_VALUE_MAX], cut[KNOB_VALUE_MAX];

	say_cooked(cut, sizeof(cut));
	cut[strlen(cut) - 2] = '\0';
	CHECK(serialline_raw(cut, false, raw, sizeof(raw)) == -EINVAL);
	CHECK(serialline_raw("absent", false, raw, sizeof(raw)) == -EINVAL);
	say_cooked(cut, sizeof(cut));
	CHECK(serialline_raw(cut, false, raw, 20) == -EOVERFLOW);
	CHECK(serialline_write(9999, "absent") == -EINVAL);
	CHECK(serialline_read(9999, raw, sizeof(raw)) < 0);
}

int main(void)
{
	a_raw_line_differs_from_the_one_before_and_fits_the_journal();
	what_is_no_line_is_refused();
	return 0;
}
