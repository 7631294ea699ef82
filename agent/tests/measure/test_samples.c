/* SPDX-License-Identifier: MIT */
#include "measure/samples.h"

#include <string.h>

#include "tests/captured.h"
#include "tests/check.h"

static void periods_become_differences(void)
{
	struct samples *s = samples_alloc(1, 5);

	CHECK(s && s->room == 5);
	s->latency_ns[0] = 3;  /* +3: 6, and 1: 7 */
	s->latency_ns[2] = 2;  /* -1: 1, and 1: 2; before it a period without one */
	s->latency_ns[3] = 66; /* +64: 128, and 1: 129, in two bytes */
	capture();
	samples_emit(s, 2, 9, &out);
	samples_free(s, 1);
	/* 07 00 02 81 01 00; the end of the line is put by capture_is() */
	CHECK(capture_is("{\"type\":\"samples\",\"cpu\":2,\"first\":0,\"periods\":5,"
			 "\"base64\":\"BwACgQEA\"}\n}\n"));
}

static void a_run_that_was_stopped_has_fewer(void)
{
	struct samples *s = samples_alloc(2, 100);

	s[1].latency_ns[0] = 0;
	capture();
	samples_emit(&s[0], -1, 0, &out);
	samples_emit(&s[1], -1, 1, &out);
	samples_free(s, 2);
	CHECK(capture_is("{\"type\":\"samples\",\"cpu\":null,\"first\":0,\"periods\":1,"
			 "\"base64\":\"AQ==\"}\n}\n"));
}

int main(void)
{
	periods_become_differences();
	a_run_that_was_stopped_has_fewer();
	return 0;
}
