/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <string.h>

#include "tests/check.h"

static struct options o;
static char error[OPTIONS_TEXT];

static int parse(int argc, char **argv)
{
	static char *words[64]; /* the options keep pointers to them */

	CHECK(argc < 64);
	memcpy(words, argv, (size_t)(argc + 1) * sizeof(*argv));
	error[0] = '\0';
	return options_parse(argc, words, &o, error);
}

#define PARSE(...)                                                                     \
	parse((int)(sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)),         \
	      (char **)(const char *[]){ __VA_ARGS__, NULL })

static void all_that_a_program_is_to_have_arrives(void)
{
	CHECK(PARSE("agent", "start", "--policy", "deadline", "--runtime-ns", "2000000",
		    "--deadline-ns", "5000000", "--period-ns", "10000000", "--cpus",
		    "0-1", "--lock-memory", "--user", "7:8", "--groups", "8,100",
		    "--capabilities", "804000", "--io", "2:4", "--given", "/dev/fd/3",
		    "--", "prog", "--policy", "x") == 0);
	CHECK(o.command == COMMAND_START && o.policy_given && !o.nice_given);
	CHECK(o.policy.kind == POLICY_DEADLINE && o.policy.runtime_ns == 2000000);
	CHECK(o.policy.deadline_ns == 5000000 && o.policy.period_ns == 10000000);
	CHECK(o.lock_memory && o.cpus_given && cpulist_count(&o.cpus) == 2);
	CHECK(o.uid == 7 && o.gid == 8 && o.groups == 2 && o.group[1] == 100);
	CHECK(o.capabilities == 0x804000 && o.io_class == 2 && o.io_level == 4);
	CHECK(strcmp(o.given_path, "/dev/fd/3") == 0);
	CHECK(o.operands == 3 && strcmp(o.operand[1], "--policy") == 0);
}

static void what_is_not_asked_for_is_not_there(void)
{
	CHECK(PARSE("agent", "start", "--", "prog") == 0);
	CHECK(!o.policy_given && !o.nice_given && !o.cpus_given && !o.user_given);
	CHECK(!o.lock_memory && !o.io_class && !o.given_path && !o.capabilities);
	CHECK(PARSE("agent", "start", "--nice", "-20", "--groups", "", "--", "p") == 0);
	CHECK(o.nice_given && o.nice == -20 && o.groups == 0);
}

static void options_that_do_not_fit_are_refused(void)
{
	CHECK(PARSE("agent", "start") && strstr(error, "no command"));
	CHECK(PARSE("agent", "start", "--policy", "fifo", "--", "p") &&
	      strstr(error, "needs a --priority"));
	CHECK(PARSE("agent", "start", "--policy", "batch", "--priority", "3", "--",
		    "p"));
	CHECK(PARSE("agent", "start", "--policy", "deadline", "--", "p"));
	CHECK(PARSE("agent", "start", "--policy", "rr", "--priority", "3",
		    "--runtime-ns", "2000", "--period-ns", "3000", "--", "p"));
}

static void bad_values_are_refused(void)
{
	const char *const bad[][2] = {
		{ "--nice", "-21" },
		{ "--nice", "20" },
		{ "--io", "0:0" },
		{ "--io", "4:0" },
		{ "--io", "2:8" },
		{ "--io", "2" },
		{ "--groups", "1,x" },
		{ "--groups", "-1" },
		{ "--groups", "4294967295" },
		{ "--capabilities", "zz" },
		{ "--capabilities", "" },
		{ "--period-ns", "1" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(PARSE("agent", "start", bad[i][0], bad[i][1], "--", "p") &&
		      strstr(error, "bad option or value"));
}

int main(void)
{
	all_that_a_program_is_to_have_arrives();
	what_is_not_asked_for_is_not_there();
	options_that_do_not_fit_are_refused();
	bad_values_are_refused();
	return 0;
}
