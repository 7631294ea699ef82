/* SPDX-License-Identifier: MIT */
/* watchcalls: the filter of system calls lets those through that are timed. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "watch/watchcalls.h"

static char filter[4096];

/* The kernel's grammar, as far as the filter needs it. */
static bool any(const char **at, long id);

static const char *skip(const char **at)
{
	while (**at == ' ')
		++*at;
	return *at;
}

static bool takes(const char **at, const char *word)
{
	if (strncmp(skip(at), word, strlen(word)) != 0)
		return false;
	*at += strlen(word);
	return true;
}

static bool one(const char **at, long id)
{
	static const char *const operators[] = { "==", "!=", ">=", "<" };
	unsigned int i = 0;
	bool is;
	long number;

	if (takes(at, "(")) {
		is = any(at, id);
		CHECK(takes(at, ")"));
		return is;
	}
	CHECK(takes(at, "id"));
	while (i < 4 && !takes(at, operators[i]))
		i++;
	CHECK(i < 4 && isdigit((unsigned char)*skip(at)));
	number = strtol(*at, (char **)at, 10);
	return i == 0   ? id == number
	       : i == 1 ? id != number
	       : i == 2 ? id >= number
			: id < number;
}

static bool all(const char **at, long id)
{
	bool is = one(at, id);

	while (takes(at, "&&"))
		is &= one(at, id);
	return is;
}

static bool any(const char **at, long id)
{
	bool is = all(at, id);

	while (takes(at, "||"))
		is |= all(at, id);
	return is;
}

int main(void)
{
	static const uint64_t lock_wait[3] = { 0, 0, 2 };
	unsigned int found = 0;

	watchcalls_filter_timed(filter, sizeof(filter));
	CHECK(strlen(filter) < 2000);
	for (long id = 0; id < 600; id++) {
		const char *name, *at = filter;
		const bool timed = watchcalls_timed(id, lock_wait, &name) != TIMED_NOT;

		CHECK(any(&at, id) == timed && !*skip(&at));
		found += timed;
	}
	CHECK(found > 20);
	return 0;
}
