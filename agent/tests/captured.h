/* SPDX-License-Identifier: MIT */
/* What a test has emitted, as text. */
#ifndef CAPTURED_H
#define CAPTURED_H

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/emit.h"
#include "tests/check.h"

static struct emit out;
static char captured[256 * 1024];

static inline void capture(void)
{
	emit_init(&out, memfd_create("captured", 0));
	CHECK(out.fd >= 0);
}

/* Ends the capture; what is still in the buffer goes out with the end of the line. */
static inline const char *capture_end(void)
{
	ssize_t n;

	CHECK(emit_end(&out) == 0);
	n = pread(out.fd, captured, sizeof(captured) - 1, 0);
	CHECK(n > 0);
	captured[n] = '\0';
	close(out.fd);
	return captured;
}

static inline bool capture_is(const char *expected)
{
	const char *got = capture_end();

	if (strcmp(got, expected) != 0)
		fprintf(stderr, "expected: %sgot:      %s", expected, got);
	return strcmp(got, expected) == 0;
}

#endif
