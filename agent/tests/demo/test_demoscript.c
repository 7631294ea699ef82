/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "demo/demoscript.h"
#include "tests/check.h"

static struct demo_script s;

static bool refused(const char *text)
{
	if (demoscript_parse(text, &s) == -EINVAL)
		return true;
	fprintf(stderr, "taken: %s\n", text);
	return false;
}

static void a_script_has_a_name_a_policy_and_steps(void)
{
	CHECK(demoscript_parse("p2:fifo:20:at=200,lock=1,run=350,unlock=1", &s) == 0);
	CHECK(strcmp(s.name, "p2") == 0);
	CHECK(s.policy.kind == POLICY_FIFO && s.policy.priority == 20);
	CHECK(s.steps == 4);
	CHECK(s.step[0].op == DEMO_AT && s.step[0].arg == 200);
	CHECK(s.step[1].op == DEMO_LOCK && s.step[1].arg == 1);
	CHECK(s.step[2].op == DEMO_RUN && s.step[2].arg == 350);
	CHECK(s.step[3].op == DEMO_UNLOCK);
}

static void deadline_has_a_runtime_and_a_period(void)
{
	CHECK(demoscript_parse("d:deadline:3000000/10000000:run=1,yield", &s) == 0);
	CHECK(s.policy.kind == POLICY_DEADLINE && s.policy.priority == 0);
	CHECK(s.policy.runtime_ns == 3000000 && s.policy.period_ns == 10000000);
	CHECK(refused("d:deadline:3000000:run=1"));
	CHECK(refused("d:deadline:20000000/10000000:run=1"));
	CHECK(refused("d:deadline:10/10000000:run=1")); /* less than the kernel takes */
}

static void the_highest_priority_is_the_watchdogs(void)
{
	CHECK(demoscript_parse("a:fifo:98:run=1", &s) == 0);
	CHECK(refused("a:fifo:99:run=1"));
	CHECK(refused("a:fifo:0:run=1"));
	CHECK(refused("a:rr:99:run=1"));
	CHECK(refused("a:other:1:run=1"));
}

static void no_step_can_last_for_ever(void)
{
	CHECK(demoscript_parse("a:other:0:run=20000000000", &s) == 0);
	CHECK(refused("a:other:0:run=20000000001"));
	CHECK(refused("a:other:0:until=20000000001"));
	CHECK(refused("a:other:0:sleep=-1"));
	CHECK(refused("a:other:0:loop=10001,run=1,next"));
}

static void loops_end_and_are_not_nested(void)
{
	CHECK(demoscript_parse("a:other:0:loop=3,run=1,next", &s) == 0);
	CHECK(refused("a:other:0:loop=3,run=1"));
	CHECK(refused("a:other:0:run=1,next"));
	CHECK(refused("a:other:0:loop=3,loop=3,run=1,next,next"));
}

static void what_is_no_script_is_refused(void)
{
	char many[1024] = "a:other:0:run=1";

	CHECK(refused(""));
	CHECK(refused("a"));
	CHECK(refused("a:other:0"));
	CHECK(refused("a:other:0:"));
	CHECK(refused(":other:0:run=1"));
	CHECK(refused("a b:other:0:run=1"));
	CHECK(refused("a234567890123456:other:0:run=1"));
	CHECK(refused("a:none:0:run=1"));
	CHECK(refused("a:other:0:run"));
	CHECK(refused("a:other:0:run="));
	CHECK(refused("a:other:0:run=1x"));
	CHECK(refused("a:other:0:yield=1"));
	CHECK(refused("a:other:0:jump=1"));
	CHECK(refused("a:other:0:lock=4"));
	CHECK(refused("a:other:0:touch=8388609"));
	for (int i = 1; i < DEMOSCRIPT_MAX_STEPS; i++)
		strcat(many, ",run=1");
	CHECK(demoscript_parse(many, &s) == 0);
	strcat(many, ",run=1");
	CHECK(refused(many));
	memset(many, 'a', sizeof(many) - 1);
	CHECK(refused(many));
}

int main(void)
{
	a_script_has_a_name_a_policy_and_steps();
	deadline_has_a_runtime_and_a_period();
	the_highest_priority_is_the_watchdogs();
	no_step_can_last_for_ever();
	loops_end_and_are_not_nested();
	what_is_no_script_is_refused();
	return 0;
}
