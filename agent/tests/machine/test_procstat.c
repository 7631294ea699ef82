/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "machine/procstat.h"
#include "tests/check.h"

/* After the name: state, parent, ..., flags, ..., the four times, ..., CPU, ... */
#define REST                                                                           \
	" S 7 1 1 0 -1 2129984 0 0 0 0 11 22 3 4 20 0 1 0 5 0 0 18446744073709551615 " \
	"0 0 0 0 0 0 0 2147483647 0 0 0 0 17 6 50 0 0 0 0 0 0 0 0 0 0 0\n"

static struct procstat s;

static bool name_is(const char *name)
{
	char text[1024];

	snprintf(text, sizeof(text), "42 (%s)%s", name, REST);
	CHECK(procstat_parse(text, &s) == 0);
	CHECK(s.pid == 42 && s.parent == 7 && s.state == 'S' && s.cpu == 6);
	CHECK(s.flags == 2129984);
	CHECK(s.cpu_ticks == 33 && s.children_ticks == 7 && s.started_ticks == 5);
	return strcmp(s.name, name) == 0;
}

static void names_may_hold_what_they_like(void)
{
	CHECK(name_is("irq/27-eth0"));
	CHECK(name_is("tmux: server"));
	CHECK(name_is("a) R 1 (b"));
	CHECK(name_is("))(("));
	CHECK(name_is("two\nlines"));
	CHECK(name_is(""));
}

static void a_long_name_is_cut(void)
{
	char name[101];

	memset(name, 'n', sizeof(name) - 1);
	name[100] = '\0';
	CHECK(!name_is(name));
	CHECK(strlen(s.name) == sizeof(s.name) - 1);
}

static void a_truncated_text_is_none(void)
{
	const char whole[] = "42 (name)" REST;
	char text[sizeof(whole)];
	size_t after_cpu = (size_t)(strstr(whole, " 17 6") - whole) + 5;

	for (size_t size = 0; size < after_cpu - 1; size++) {
		memcpy(text, whole, size);
		text[size] = '\0';
		CHECK(procstat_parse(text, &s) == -EINVAL);
	}
}

static void other_text_is_none(void)
{
	CHECK(procstat_parse("no process", &s) == -EINVAL);
	CHECK(procstat_parse(") (", &s) == -EINVAL);
	CHECK(procstat_parse("x (y)" REST, &s) == -EINVAL);
}

static void this_process_is_found_and_a_gone_one_is_not(void)
{
	CHECK(procstat_read(getpid(), &s) == 0);
	CHECK(s.pid == getpid() && s.parent == getppid());
	CHECK(procstat_read(0x7fffffff, &s) == -ENOENT);
}

int main(void)
{
	names_may_hold_what_they_like();
	a_long_name_is_cut();
	a_truncated_text_is_none();
	other_text_is_none();
	this_process_is_found_and_a_gone_one_is_not();
	return 0;
}
