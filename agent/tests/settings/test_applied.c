/* SPDX-License-Identifier: MIT */
/* applied: what outlives its process until it is asked back. */

#include "files/tree.h"
#include "settings/applied.h"
#include "tests/check.h"
#include "tests/fakemachine.h"

static void note_refused(void *context, const struct journal_entry *entry, int err)
{
	CHECK(context == told);
	sprintf(told + strlen(told), "!%s:%d ", entry->knob, err);
}

static int restore_applied(void)
{
	const struct applied_visitor visitor = { note, note_refused, told };

	told[0] = '\0';
	return applied_restore(dir, root, &visitor);
}

static void what_is_applied_outlives_its_process_and_is_put_back_once(void)
{
	struct journal j;

	reset();
	CHECK(restore_applied() == 0);
	journal_init(&j);
	CHECK(set(&j, "governor", 0, "performance") == 0);
	CHECK(set(&j, "rt_runtime_us", 0, "-1") == 0);
	CHECK(applied_keep(&j, dir) == 0);
	CHECK(journals() == 1);
	CHECK(strcmp(text_of("/run/applied"),
		     "governor 0 schedutil\nrt_runtime_us 0 950000\n") == 0);

	CHECK(replay() == 0 && strcmp(told, "") == 0);
	CHECK(knob_holds(GOVERNOR(0), "performance"));
	CHECK(restore_applied() == 0);
	CHECK(strcmp(told, "rt_runtime_us governor ") == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
	CHECK(knob_holds(RT_RUNTIME, "950000"));
	CHECK(journals() == 0);
	CHECK(restore_applied() == 0 && strcmp(told, "") == 0);
}

static void what_is_applied_twice_is_put_back_to_what_was_first(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(set(&j, "governor", 0, "performance") == 0);
	CHECK(applied_keep(&j, dir) == 0);
	CHECK(set(&j, "governor", 0, "powersave") == 0);
	CHECK(set(&j, "governor", 1, "powersave") == 0);
	CHECK(applied_keep(&j, dir) == 0);
	CHECK(restore_applied() == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
	CHECK(knob_holds(GOVERNOR(1), "ondemand"));
}

/* Killed after the first of two changes: nothing was asked to last yet. */
static void an_apply_that_was_killed_has_applied_nothing(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(set(&j, "governor", 0, "performance") == 0);
	CHECK(applied_keep(&j, dir) == 0);
	set_and_die("governor", 0, "powersave");
	set_and_die("governor", 1, "powersave");
	CHECK(replay() == 0);
	CHECK(knob_holds(GOVERNOR(0), "performance"));
	CHECK(knob_holds(GOVERNOR(1), "ondemand"));
	CHECK(restore_applied() == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
}

static void what_a_running_agent_has_changed_once_more_stays_applied(void)
{
	struct journal first, other;

	reset();
	journal_init(&first);
	journal_init(&other);
	CHECK(set(&first, "governor", 0, "performance") == 0);
	CHECK(set(&first, "governor", 1, "performance") == 0);
	CHECK(applied_keep(&first, dir) == 0);
	CHECK(set(&other, "governor", 0, "powersave") == 0);

	CHECK(restore_applied() == 1);
	CHECK(knob_holds(GOVERNOR(0), "powersave"));
	CHECK(knob_holds(GOVERNOR(1), "ondemand"));
	CHECK(strcmp(text_of("/run/applied"), "governor 0 schedutil\n") == 0);

	CHECK(journal_restore(&other, root, NULL, NULL) == 0);
	CHECK(knob_holds(GOVERNOR(0), "performance"));
	CHECK(restore_applied() == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
}

static void what_the_kernel_refuses_to_put_back_stays_applied(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(set(&j, "governor", 0, "performance") == 0);
	CHECK(applied_keep(&j, dir) == 0);
	CHECK(unlink(path_of(GOVERNOR(0))) == 0);
	CHECK(restore_applied() == 1);
	CHECK(strstr(told, "!governor:-2"));
	write_text(GOVERNOR(0), "performance\n");
	CHECK(restore_applied() == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
}

int main(void)
{
	make_machine();
	what_is_applied_outlives_its_process_and_is_put_back_once();
	what_is_applied_twice_is_put_back_to_what_was_first();
	an_apply_that_was_killed_has_applied_nothing();
	what_a_running_agent_has_changed_once_more_stays_applied();
	what_the_kernel_refuses_to_put_back_stays_applied();
	CHECK(tree_remove(base) == 0);
	return 0;
}
