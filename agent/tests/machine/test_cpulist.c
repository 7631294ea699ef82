/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "machine/cpulist.h"
#include "tests/check.h"

static bool formats_as(const char *text, const char *expected)
{
	struct cpulist set;
	char got[CPULIST_TEXT_MAX];

	CHECK(cpulist_parse(text, &set) == 0);
	cpulist_format(&set, got, sizeof(got));
	return strcmp(got, expected) == 0;
}

static void lists_are_written_as_the_kernel_does(void)
{
	CHECK(formats_as("0", "0"));
	CHECK(formats_as("0-3,8\n", "0-3,8"));
	CHECK(formats_as("3,1,2,1", "1-3"));
	CHECK(formats_as("5-5", "5"));
	CHECK(formats_as("0,2,4-5,7", "0,2,4-5,7"));
	CHECK(formats_as("62-65,1023", "62-65,1023"));
	CHECK(formats_as("007", "7"));
	CHECK(formats_as("0-1023", "0-1023"));
}

static void bad_syntax_is_refused_and_leaves_the_set_alone(void)
{
	static const char *const bad[] = { "",    ",",     "0,", "3-1",  "-1",   "+1",
					   " 1",  "1 ",    "1-", "0x1",  "1,,2", "a",
					   "1;2", "1-2-3", "\n", "1, 2", "1\r\n" };
	struct cpulist set = { { 42 } };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(cpulist_parse(bad[i], &set) == -EINVAL);
	CHECK(set.word[0] == 42);
}

static void cpus_beyond_the_set_are_out_of_range(void)
{
	struct cpulist set;

	CHECK(cpulist_parse("1024", &set) == -ERANGE);
	CHECK(cpulist_parse("0-1024", &set) == -ERANGE);
	CHECK(cpulist_parse("4294967296", &set) == -ERANGE);
	CHECK(cpulist_parse("99999999999999999999999", &set) == -ERANGE);
}

static void the_longest_text_fits_its_buffer(void)
{
	struct cpulist set = { 0 }, again;
	char text[CPULIST_TEXT_MAX];

	for (unsigned int cpu = 0; cpu < CPULIST_MAX_CPUS; cpu++)
		if (cpu % 3)
			cpulist_add(&set, cpu);
	cpulist_format(&set, text, sizeof(text));
	CHECK(cpulist_parse(text, &again) == 0);
	CHECK(cpulist_equal(&set, &again));
}

static void a_short_buffer_gets_whole_ranges_only(void)
{
	struct cpulist set;
	char text[8];

	CHECK(cpulist_parse("1,10-12,200", &set) == 0);
	cpulist_format(&set, text, sizeof(text));
	CHECK(strcmp(text, "1,10-12") == 0);
	cpulist_format(&set, text, 7);
	CHECK(strcmp(text, "1") == 0);
	cpulist_format(&set, text, 1);
	CHECK(strcmp(text, "") == 0);
}

static void an_empty_set_has_an_empty_text(void)
{
	const struct cpulist none = { 0 };
	char text[4] = "x";

	cpulist_format(&none, text, sizeof(text));
	CHECK(strcmp(text, "") == 0);
	CHECK(cpulist_next(&none, 0) == -1);
	CHECK(cpulist_count(&none) == 0);
}

static void sets_count_and_subtract_beyond_64_cpus(void)
{
	struct cpulist all, some;

	CHECK(cpulist_parse("0-255", &all) == 0);
	CHECK(cpulist_parse("0-63,100,255", &some) == 0);
	CHECK(cpulist_count(&all) == 256);
	cpulist_subtract(&all, &some);
	CHECK(cpulist_count(&all) == 256 - 66);
	CHECK(cpulist_next(&all, 0) == 64);
	CHECK(cpulist_next(&all, 100) == 101);
	CHECK(cpulist_next(&all, 255) == -1);
	CHECK(!cpulist_has(&all, 100) && cpulist_has(&all, 101));
}

static void a_cpu_that_cannot_be_is_in_no_set(void)
{
	struct cpulist set = { 0 };

	cpulist_add(&set, CPULIST_MAX_CPUS);
	cpulist_add(&set, UINT32_MAX);
	CHECK(cpulist_count(&set) == 0);
	CHECK(!cpulist_has(&set, UINT32_MAX));
	CHECK(cpulist_next(&set, CPULIST_MAX_CPUS) == -1);
}

static void an_affinity_that_was_set_is_read_back(void)
{
	struct cpulist before, one = { 0 }, got;

	CHECK(cpulist_get_affinity(&before) == 0);
	CHECK(cpulist_count(&before) > 0);
	cpulist_add(&one, (unsigned int)cpulist_next(&before, 0));
	CHECK(cpulist_set_affinity(&one) == 0);
	CHECK(cpulist_get_affinity(&got) == 0);
	CHECK(cpulist_equal(&got, &one));
	CHECK(cpulist_set_affinity(&before) == 0);
}

static void cpus_that_the_affinity_leaves_out_are_reachable(void)
{
	struct cpulist before, one = { 0 }, usable, reachable, got;

	CHECK(cpulist_get_affinity(&before) == 0);
	cpulist_add(&one, (unsigned int)cpulist_next(&before, 0));
	CHECK(cpulist_set_affinity(&one) == 0);
	CHECK(cpulist_find_reachable(&usable, &reachable) == 0);
	CHECK(cpulist_equal(&usable, &one));
	cpulist_subtract(&before, &reachable);
	CHECK(cpulist_count(&before) == 0);
	CHECK(cpulist_get_affinity(&got) == 0);
	CHECK(cpulist_equal(&got, &one));
	CHECK(cpulist_set_affinity(&reachable) == 0);
}

int main(void)
{
	lists_are_written_as_the_kernel_does();
	bad_syntax_is_refused_and_leaves_the_set_alone();
	cpus_beyond_the_set_are_out_of_range();
	the_longest_text_fits_its_buffer();
	a_short_buffer_gets_whole_ranges_only();
	an_empty_set_has_an_empty_text();
	sets_count_and_subtract_beyond_64_cpus();
	a_cpu_that_cannot_be_is_in_no_set();
	an_affinity_that_was_set_is_read_back();
	cpus_that_the_affinity_leaves_out_are_reachable();
	return 0;
}
