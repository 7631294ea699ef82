/* SPDX-License-Identifier: MIT */
#include "machine/taskfile.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "tests/check.h"

#define TAIL                                                                           \
	"R 7 1 1 0 -1 4194304 130 8 3 9 11 22 4 5 -101 -5 12 0 777 0 0 "               \
	"18446744073709551615 1 2 3 4 5 6 7 8 9 0 0 0 17 5 99 6 0 0 0 0 0 0\n"

static struct taskstat s;

static bool named(const char *name)
{
	static char text[512];

	snprintf(text, sizeof(text), "42 (%s) %s", name, TAIL);
	CHECK(taskstat_parse(text, &s) == 0);
	CHECK(s.state == 'R' && s.flags == 4194304 && s.minor_faults == 130);
	CHECK(s.major_faults == 3 && s.user_ticks == 11 && s.system_ticks == 22);
	CHECK(s.effective == -101 && s.nice == -5 && s.threads == 12);
	CHECK(s.start_ticks == 777 && s.last_cpu == 5);
	CHECK(s.priority == 99 && s.policy == 6);
	return s.name_size == strlen(name) && memcmp(s.name, name, s.name_size) == 0;
}

static void each_field_is_found_whatever_the_name(void)
{
	CHECK(named("loop"));
	CHECK(named(""));
	CHECK(named("))(("));
	CHECK(named("x) S 1 2 3"));
	CHECK(named("two\nlines"));
	CHECK(named("\xff\xfe"));
}

static void a_text_that_breaks_off_is_none(void)
{
	const char whole[] = "42 (name) " TAIL;
	size_t end = (size_t)(strstr(whole, " 99 6") - whole) + 5;
	char text[sizeof(whole)];

	for (size_t size = 0; size < end; size++) {
		memcpy(text, whole, size);
		text[size] = '\0';
		CHECK(taskstat_parse(text, &s) == -EINVAL);
	}
	CHECK(taskstat_parse(") (", &s) == -EINVAL);
	CHECK(taskstat_parse("1 (x) S a", &s) == -EINVAL);
}

static void a_line_of_a_status_is_found_by_its_whole_key(void)
{
	const char text[] = "Name:\ta\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8\n"
			    "nonvoluntary_ctxt_switches:\t 7\nvoluntary:\n";
	size_t size;
	const char *at = taskstatus_find(text, "Cpus_allowed_list", &size);

	CHECK(at && size == 5 && memcmp(at, "0-3,8", 5) == 0);
	CHECK(taskstatus_find(text, "Name", &size) && size == 1);
	at = taskstatus_find(text, "nonvoluntary_ctxt_switches", &size);
	CHECK(at && *at == '7' && size == 1);
	CHECK(taskstatus_find(text, "voluntary", &size) && size == 0);
	CHECK(!taskstatus_find(text, "Cpus", &size));
	CHECK(!taskstatus_find("", "Cpus", &size));
}

static void the_time_of_a_kernel_that_keeps_none_is_none(void)
{
	int64_t ns;

	CHECK(taskschedstat_parse("5 0 0\n", &ns) == 0 && ns == 5);
	CHECK(taskschedstat_parse("0 9 1\n", &ns) == 0 && ns == 0);
	CHECK(taskschedstat_parse("0 0 0\n", &ns) == -EINVAL);
	CHECK(taskschedstat_parse("5\n", &ns) == -EINVAL);
	CHECK(taskschedstat_parse("", &ns) == -EINVAL);
}

static bool grouped(const char *text, const char *expected)
{
	size_t size;
	const char *at = taskcgroup_find(text, &size);

	if (!expected)
		return !at;
	return at && size == strlen(expected) && memcmp(at, expected, size) == 0;
}

static void a_control_group_is_that_of_the_scheduler(void)
{
	CHECK(grouped("0::/system.slice/a:b.service\n", "/system.slice/a:b.service"));
	CHECK(grouped("0::/\n", "/"));
	CHECK(grouped("5:cpuset:/x\n4:cpu,cpuacct:/rt\n1:name=systemd:/s\n0::/u\n",
		      "/rt"));
	CHECK(grouped("0::/u\n4:cpuacct,cpu:/rt", "/rt"));
	CHECK(grouped("5:cpuset:/x\n4:cpuacct:/y\n0::/u\n", "/u"));
	CHECK(grouped("5:cpuset:/x\n1:name=cpu:/y\n", NULL));
	CHECK(grouped("5:cpu", NULL));
	CHECK(grouped("0:\n\n:\n", NULL));
	CHECK(grouped("", NULL));
}

int main(void)
{
	a_control_group_is_that_of_the_scheduler();
	each_field_is_found_whatever_the_name();
	a_text_that_breaks_off_is_none();
	a_line_of_a_status_is_found_by_its_whole_key();
	the_time_of_a_kernel_that_keeps_none_is_none();
	return 0;
}
