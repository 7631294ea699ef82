/* SPDX-License-Identifier: MIT */
/* journal: what is changed on a machine is written down, and put back. */
#include <errno.h>

#include "files/tree.h"
#include "tests/check.h"
#include "tests/fakemachine.h"

static void settings_are_made_and_put_back(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(set(&j, "governor", 0, "performance") == 0);
	CHECK(set(&j, "governor", 1, "powersave") == 0);
	CHECK(set(&j, "rt_runtime_us", 0, "-1") == 0);
	CHECK(knob_holds(GOVERNOR(0), "performance"));
	CHECK(knob_holds(GOVERNOR(1), "powersave"));
	CHECK(knob_holds(RT_RUNTIME, "-1"));
	CHECK(strcmp(text_of(own_journal()),
		     "governor 0 schedutil\ngovernor 1 ondemand\n"
		     "rt_runtime_us 0 950000\n") == 0);

	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
	CHECK(knob_holds(GOVERNOR(1), "ondemand"));
	CHECK(knob_holds(RT_RUNTIME, "950000"));
	CHECK(journals() == 0);
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
}

static void the_journal_is_for_its_owner_only(void)
{
	struct journal j;
	struct stat st;

	reset();
	journal_init(&j);
	CHECK(set(&j, "governor", 0, "performance") == 0);
	CHECK(stat(dir, &st) == 0 && (st.st_mode & 0777) == 0700);
	CHECK(stat(path_of(own_journal()), &st) == 0 && (st.st_mode & 0777) == 0600);
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
}

static void the_last_change_is_put_back_first(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(set(&j, "governor", 0, "powersave") == 0);
	CHECK(set(&j, "governor", 0, "performance") == 0);
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
}

static void what_is_already_so_is_not_written_down(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(set(&j, "governor", 0, "schedutil") == 0);
	CHECK(strcmp(text_of(own_journal()), "") == 0);
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
}

/* A file of sysctl that not even root may write refuses the change: what is then in the
 * journal was written before it was tried. */
static void a_change_is_written_down_before_it_is_made(void)
{
	struct journal j;

	reset();
	CHECK(unlink(path_of(RT_RUNTIME)) == 0);
	CHECK(symlink("/proc/sys/kernel/ostype", path_of(RT_RUNTIME)) == 0);
	journal_init(&j);
	CHECK(set(&j, "rt_runtime_us", 0, "-1") == -EACCES);
	CHECK(strcmp(text_of(own_journal()), "rt_runtime_us 0 Linux\n") == 0);

	/* nothing has changed, so nothing has to be put back */
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
	CHECK(journals() == 0);
}

/* The kernel cuts the name of a process to 15 bytes. */
static void a_value_that_does_not_hold_is_an_error(void)
{
	struct journal j;

	reset();
	CHECK(unlink(path_of(RT_RUNTIME)) == 0);
	CHECK(symlink("/proc/self/comm", path_of(RT_RUNTIME)) == 0);
	journal_init(&j);
	CHECK(set(&j, "rt_runtime_us", 0, "longer-than-15-bytes") == KNOB_DID_NOT_HOLD);
	CHECK(knob_holds(RT_RUNTIME, "longer-than-15-"));
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
	CHECK(!knob_holds(RT_RUNTIME, "longer-than-15-"));
}

static void what_a_killed_process_left_is_put_back(void)
{
	reset();
	set_and_die("governor", 0, "performance");
	set_and_die("governor", 1, "performance");
	CHECK(knob_holds(GOVERNOR(0), "performance"));
	CHECK(journals() == 2);

	CHECK(replay() == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
	CHECK(knob_holds(GOVERNOR(1), "ondemand"));
	CHECK(strcmp(told, "governor governor ") == 0);
	CHECK(journals() == 0);

	CHECK(replay() == 0);
	CHECK(strcmp(told, "governor governor ") == 0);
}

static void without_a_directory_there_is_nothing_to_replay(void)
{
	reset();
	CHECK(replay() == 0);
	CHECK(access(dir, F_OK) == -1);
}

static void the_journal_of_a_living_process_is_left_alone(void)
{
	int up[2], down[2], status;
	struct journal j;
	char byte;
	pid_t pid;

	reset();
	CHECK(pipe(up) == 0 && pipe(down) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct journal theirs;

		journal_init(&theirs);
		CHECK(set(&theirs, "governor", 0, "performance") == 0);
		CHECK(write(up[1], ".", 1) == 1);
		CHECK(read(down[0], &byte, 1) == 1);
		_exit(0);
	}
	CHECK(read(up[0], &byte, 1) == 1);
	CHECK(replay() == 0);
	CHECK(knob_holds(GOVERNOR(0), "performance"));
	CHECK(strcmp(told, "") == 0);

	/* and nobody else gets that knob meanwhile, but another one */
	journal_init(&j);
	CHECK(set(&j, "governor", 0, "powersave") == JOURNAL_HELD);
	CHECK(knob_holds(GOVERNOR(0), "performance"));
	CHECK(set(&j, "governor", 1, "powersave") == 0);
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);

	CHECK(write(down[1], ".", 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(replay() == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
	for (int i = 0; i < 2; i++) {
		close(up[i]);
		close(down[i]);
	}
}

static void a_torn_last_line_was_never_followed_by_a_change(void)
{
	reset();
	CHECK(mkdir(dir, 0700) == 0);
	write_text(GOVERNOR(0), "performance\n");
	write_text("/run/journal.999999", "governor 0 schedutil\ngovernor 1 perform");
	CHECK(replay() == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
	CHECK(knob_holds(GOVERNOR(1), "ondemand"));
	CHECK(journals() == 0);
}

static void what_no_agent_has_written_is_ignored(void)
{
	static const char *const forged[] = {
		"no_such_knob 0 1\n",
		"/etc/passwd 0 root\n",
		"../../governor 0 performance\n",
		"governor -1 performance\n",
		"governor 0 ../../../etc/passwd\n",
		"governor 0 a\001b\n",
		"governor 0 a\177\n",
		"governor 0 \303\251\n",
		"governor 0 $(reboot)\n",
		"governor 0\n",
		"governor zero performance\n",
		"\n\n\n",
		"governor\n0\nperformance\n",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0 1\n",
	};

	reset();
	CHECK(mkdir(dir, 0700) == 0);
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		write_text("/run/journal.1", forged[i]);
		CHECK(replay() == 0);
		CHECK(strcmp(told, "") == 0);
		CHECK(knob_holds(GOVERNOR(0), "schedutil"));
		CHECK(journals() == 0);
	}
}

static void links_and_other_names_are_no_journals(void)
{
	reset();
	CHECK(mkdir(dir, 0700) == 0);
	write_text("/forged", "governor 0 performance\n");
	CHECK(symlink(path_of("/forged"), path_of("/run/journal.5")) == 0);
	CHECK(mkfifo(path_of("/run/journal.6"), 0600) == 0);
	write_text("/run/other", "governor 0 performance\n");
	CHECK(replay() == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
	CHECK(strcmp(text_of("/forged"), "governor 0 performance\n") == 0);
	CHECK(journals() == 3);
}

static void a_directory_that_others_can_write_is_refused(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(mkdir(dir, 0700) == 0);
	write_text("/run/journal.1", "governor 0 performance\n");
	for (int mode = 0; mode < 2; mode++) {
		CHECK(chmod(dir, mode ? 0702 : 0720) == 0);
		CHECK(set(&j, "governor", 0, "powersave") == -EPERM);
		CHECK(replay() == (geteuid() == 0 ? -EPERM : 0));
		CHECK(knob_holds(GOVERNOR(0), "schedutil"));
	}
}

static void a_link_in_place_of_the_directory_is_refused(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(symlink(path_of("/root"), dir) == 0);
	CHECK(set(&j, "governor", 0, "powersave") == -EPERM);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
}

/* In another pid namespace the same number may be alive. */
static void a_journal_of_our_number_is_not_overwritten(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(mkdir(dir, 0700) == 0);
	write_text(own_journal(), "governor 1 ondemand\n");
	CHECK(set(&j, "governor", 0, "powersave") == -EEXIST);
	CHECK(strcmp(text_of(own_journal()), "governor 1 ondemand\n") == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
}

static void what_cannot_be_put_back_stays_in_the_journal(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(set(&j, "governor", 0, "performance") == 0);
	CHECK(set(&j, "governor", 1, "performance") == 0);
	CHECK(unlink(path_of(GOVERNOR(0))) == 0);
	CHECK(journal_restore(&j, root, NULL, NULL) == 1);
	CHECK(knob_holds(GOVERNOR(1), "ondemand"));
	CHECK(journals() == 1);

	CHECK(replay() == 1);
	write_text(GOVERNOR(0), "performance\n");
	CHECK(replay() == 0);
	CHECK(knob_holds(GOVERNOR(0), "schedutil"));
	CHECK(journals() == 0);
}

int main(void)
{
	make_machine();
	settings_are_made_and_put_back();
	the_journal_is_for_its_owner_only();
	the_last_change_is_put_back_first();
	what_is_already_so_is_not_written_down();
	a_change_is_written_down_before_it_is_made();
	a_value_that_does_not_hold_is_an_error();
	what_a_killed_process_left_is_put_back();
	without_a_directory_there_is_nothing_to_replay();
	the_journal_of_a_living_process_is_left_alone();
	a_torn_last_line_was_never_followed_by_a_change();
	what_no_agent_has_written_is_ignored();
	links_and_other_names_are_no_journals();
	a_directory_that_others_can_write_is_refused();
	a_link_in_place_of_the_directory_is_refused();
	a_journal_of_our_number_is_not_overwritten();
	what_cannot_be_put_back_stays_in_the_journal();
	CHECK(tree_remove(base) == 0);
	return 0;
}
