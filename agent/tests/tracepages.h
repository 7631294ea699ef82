/* SPDX-License-Identifier: MIT */
/* Pages of the kernel's trace ring, made by hand. */
#ifndef TRACEPAGES_H
#define TRACEPAGES_H

#include <string.h>

#include "tests/check.h"
#include "trace/tracepage.h"

#define PAGE_BYTES 256

static const char header_page[] =
	"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
	"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
	"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
	"\tfield: char data;\toffset:16;\tsize:240;\tsigned:0;\n";

static inline struct tracepage_layout layout_of_tests(void)
{
	struct tracepage_layout layout;

	CHECK(tracepage_layout(header_page, &layout) == 0);
	return layout;
}

static inline void begin_page(unsigned char *page, uint64_t time)
{
	memset(page, 0, PAGE_BYTES);
	memcpy(page, &time, sizeof(time));
}

static inline uint64_t commit_of(const unsigned char *page)
{
	uint64_t commit;

	memcpy(&commit, page + 8, sizeof(commit));
	return commit;
}

static inline void set_commit(unsigned char *page, uint64_t commit)
{
	memcpy(page + 8, &commit, sizeof(commit));
}

/* Appends an event's head and, if wanted, a word after it. */
static inline void put_event(unsigned char *page, uint32_t type, uint32_t delta,
			     uint32_t next, uint32_t size)
{
	uint32_t head = type | delta << 5;
	uint64_t commit = commit_of(page);

	memcpy(page + 16 + commit, &head, sizeof(head));
	if (size > 4)
		memcpy(page + 20 + commit, &next, sizeof(next));
	set_commit(page, commit + size);
}

#endif
