/* SPDX-License-Identifier: MIT */
/* journal and knob, on a directory that stands for the machine's root. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../applied.h"
#include "../journal.h"
#include "../slurp.h"
#include "../tree.h"
#include "check.h"

#define GOVERNOR(cpu)                                                                  \
	"/root/sys/devices/system/cpu/cpu" #cpu "/cpufreq/scaling_governor"
#define RT_RUNTIME "/root/proc/sys/kernel/sched_rt_runtime_us"

#define HUGEPAGE "/root/sys/kernel/mm/transparent_hugepage/enabled"

static char base[64] = "/tmp/rtscope-test-XXXXXX";
static char root[128], dir[128];
static char told[256];

static const char *path_of(const char *name)
{
	static char path[4][256];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s%s", base, name);
	return path[turn];
}

static void write_text(const char *name, const char *text)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static const char *text_of(const char *name)
{
	static char text[4096];

	CHECK(slurp(path_of(name), text, sizeof(text)) >= 0);
	return text;
}

static bool knob_holds(const char *name, const char *value)
{
	const char *text = text_of(name);

	return strncmp(text, value, strlen(value)) == 0 &&
	       strcspn(text, "\n") == strlen(value);
}

static const char *own_journal(void)
{
	static char name[64];

	snprintf(name, sizeof(name), "/run/journal.%d", (int)getpid());
	return name;
}

static int journals(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int count = 0;

	while (d && (entry = readdir(d)))
		count += entry->d_name[0] != '.';
	if (d)
		closedir(d);
	return count;
}

static void make_machine(void)
{
	static const char *const dirs[] = {
		"/root",
		"/root/proc",
		"/root/proc/sys",
		"/root/proc/sys/kernel",
		"/root/sys",
		"/root/sys/kernel",
		"/root/sys/kernel/tracing",
		"/root/sys/kernel/tracing/instances",
		"/root/sys/devices",
		"/root/sys/devices/system",
		"/root/sys/devices/system/cpu",
		"/root/sys/devices/system/cpu/cpu0",
		"/root/sys/devices/system/cpu/cpu0/cpufreq",
		"/root/sys/devices/system/cpu/cpu1",
		"/root/sys/devices/system/cpu/cpu1/cpufreq",
		"/root/sys/kernel/mm",
		"/root/sys/kernel/mm/transparent_hugepage",
	};

	CHECK(mkdtemp(base));
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		CHECK(mkdir(path_of(dirs[i]), 0700) == 0);
	snprintf(root, sizeof(root), "%s/root", base);
	snprintf(dir, sizeof(dir), "%s/run", base);
}

/* The machine as found, and no journal directory. */
static void reset(void)
{
	char command[256];

	write_text(GOVERNOR(0), "schedutil\n");
	write_text(GOVERNOR(1), "ondemand\n");
	unlink(path_of(RT_RUNTIME));
	write_text(RT_RUNTIME, "950000\n");
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	CHECK(system(command) == 0);
	told[0] = '\0';
}

static void note(void *context, const struct journal_entry *entry)
{
	CHECK(context == told);
	strcat(told, entry->knob);
	strcat(told, " ");
}

static int replay(void)
{
	return journal_replay(dir, root, note, told);
}

static int set(struct journal *j, const char *knob, int index, const char *value)
{
	const struct knob_place place = { root, knob, index };

	return journal_set_knob(j, dir, &place, value);
}

/* In a process of its own, which then ends as if killed. */
static void set_and_die(const char *knob, int index, const char *value)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		struct journal j;

		journal_init(&j);
		_exit(set(&j, knob, index, value) ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

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

static void settings_that_are_none_are_refused(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(set(&j, "turbo", 0, "1") == -EINVAL);
	CHECK(set(&j, "governor", 0, "") == -EINVAL);
	CHECK(set(&j, "governor", 0, "a b") == -EINVAL);
	CHECK(set(&j, "governor", 7, "performance") == -ENOENT);
	write_text(RT_RUNTIME, "two words\n");
	CHECK(set(&j, "rt_runtime_us", 0, "-1") == -EINVAL);
	CHECK(knob_holds(RT_RUNTIME, "two words"));
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
}

static bool instance_is_there(int owner)
{
	char name[96];

	snprintf(name, sizeof(name), "/root/sys/kernel/tracing/instances/rtscope.%d",
		 owner);
	return access(path_of(name), F_OK) == 0;
}

static void a_tracing_instance_is_removed_with_the_run_that_made_it(void)
{
	struct journal j;

	reset();
	journal_init(&j);
	CHECK(set(&j, "trace_instance", 42, "made") == 0);
	CHECK(instance_is_there(42));
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
	CHECK(!instance_is_there(42));
	CHECK(journals() == 0);
}

static void a_tracing_instance_of_a_killed_process_is_removed_by_the_next(void)
{
	reset();
	set_and_die("trace_instance", 43, "made");
	CHECK(instance_is_there(43));

	CHECK(replay() == 0);
	CHECK(!instance_is_there(43));
	CHECK(strcmp(told, "trace_instance ") == 0);
	CHECK(journals() == 0);
}

static void an_instance_out_of_reach_is_not_taken_for_removed(void)
{
	const char *const tracing = "/root/sys/kernel/tracing";
	char aside[128];

	reset();
	set_and_die("trace_instance", 44, "made");
	snprintf(aside, sizeof(aside), "%s", path_of("/root/sys/kernel/aside"));
	CHECK(rename(path_of(tracing), aside) == 0);
	CHECK(mkdir(path_of(tracing), 0755) == 0); /* not mounted, and cannot be */
	CHECK(replay() == 1);
	CHECK(journals() == 1);

	CHECK(rmdir(path_of(tracing)) == 0);
	CHECK(rename(aside, path_of(tracing)) == 0);
	CHECK(replay() == 0);
	CHECK(!instance_is_there(44));
}

static void only_the_governor_is_per_cpu(void)
{
	CHECK(knob_is_per_cpu("governor"));
	CHECK(!knob_is_per_cpu("rt_runtime_us"));
	CHECK(!knob_is_per_cpu("no_such_knob"));
}

static void a_value_is_a_word(void)
{
	char longest[KNOB_VALUE_MAX + 1];

	memset(longest, 'x', sizeof(longest));
	longest[KNOB_VALUE_MAX] = '\0';
	CHECK(!knob_value_ok(longest));
	longest[KNOB_VALUE_MAX - 1] = '\0';
	CHECK(knob_value_ok(longest));
	CHECK(knob_value_ok("-1") && knob_value_ok("energy_performance.x-9"));
	CHECK(knob_value_ok("0-1,4"));
	CHECK(!knob_value_ok("") && !knob_value_ok("a\n") && !knob_value_ok("a/b"));
}

static void a_knob_with_several_places_is_found_by_its_number(void)
{
	struct knob_place place = { root, "governor", 1023 };
	char path[256], small[16];

	CHECK(knob_path(&place, path, sizeof(path)) == 0);
	CHECK(strcmp(path, &GOVERNOR(1023)[strlen("/root")]) == 0);
	place = (struct knob_place){ root, "idle_state", 3 * KNOB_STRIDE + 17 };
	CHECK(knob_path(&place, path, sizeof(path)) == 0);
	CHECK(strcmp(path, "/sys/devices/system/cpu/cpu17/cpuidle/state3/disable") ==
	      0);
	CHECK(knob_path(&place, small, sizeof(small)) == -ENAMETOOLONG);
	place.name = "memory_group";
	CHECK(knob_path(&place, path, sizeof(path)) == -EINVAL);
}

/* On a plain file, so a value that was chosen is not marked afterwards. */
static void of_several_words_the_marked_one_is_the_value(void)
{
	const struct knob_place place = { root, "transparent_hugepage", 0 };
	char value[KNOB_VALUE_MAX];

	reset();
	write_text(HUGEPAGE, "always [madvise] never\n");
	CHECK(knob_read(&place, value) == 0 && strcmp(value, "madvise") == 0);
	write_text(HUGEPAGE, "none voluntary (full)\n");
	CHECK(knob_read(&place, value) == 0 && strcmp(value, "full") == 0);
	write_text(HUGEPAGE, "nothing is marked\n");
	CHECK(knob_read(&place, value) == -EINVAL);
}

static void a_value_too_long_to_be_put_back_whole_is_refused(void)
{
	const struct knob_place place = { root, "rt_runtime_us", 0 };
	char text[KNOB_VALUE_MAX + 1], value[KNOB_VALUE_MAX];

	reset();
	memset(text, 'f', sizeof(text));
	text[KNOB_VALUE_MAX] = '\0';
	write_text(RT_RUNTIME, text);
	CHECK(knob_read(&place, value) == -EOVERFLOW);
	text[KNOB_VALUE_MAX - 1] = '\0';
	write_text(RT_RUNTIME, text);
	CHECK(knob_read(&place, value) == 0 && strcmp(value, text) == 0);
}

static void a_try_that_failed_is_as_if_it_had_not_been_made(void)
{
	struct journal j;

	reset();
	CHECK(unlink(path_of(RT_RUNTIME)) == 0);
	CHECK(symlink("/proc/self/comm", path_of(RT_RUNTIME)) == 0);
	journal_init(&j);
	CHECK(journal_take_back(&j, root) == 0);
	CHECK(set(&j, "governor", 0, "performance") == 0);
	CHECK(set(&j, "rt_runtime_us", 0, "longer-than-15-bytes") == KNOB_DID_NOT_HOLD);
	CHECK(journal_take_back(&j, root) == 0);
	CHECK(!knob_holds(RT_RUNTIME, "longer-than-15-"));
	CHECK(strcmp(text_of(own_journal()), "governor 0 schedutil\n") == 0);

	/* and what was made before it stays, also when there is nothing to take back */
	CHECK(set(&j, "governor", 7, "performance") == -ENOENT);
	CHECK(journal_take_back(&j, root) == 0);
	CHECK(knob_holds(GOVERNOR(0), "performance"));
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
}

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
	settings_that_are_none_are_refused();
	a_tracing_instance_is_removed_with_the_run_that_made_it();
	a_tracing_instance_of_a_killed_process_is_removed_by_the_next();
	an_instance_out_of_reach_is_not_taken_for_removed();
	only_the_governor_is_per_cpu();
	a_value_is_a_word();
	a_knob_with_several_places_is_found_by_its_number();
	of_several_words_the_marked_one_is_the_value();
	a_value_too_long_to_be_put_back_whole_is_refused();
	a_try_that_failed_is_as_if_it_had_not_been_made();
	what_is_applied_outlives_its_process_and_is_put_back_once();
	what_is_applied_twice_is_put_back_to_what_was_first();
	an_apply_that_was_killed_has_applied_nothing();
	what_a_running_agent_has_changed_once_more_stays_applied();
	what_the_kernel_refuses_to_put_back_stays_applied();
	CHECK(tree_remove(base) == 0);
	return 0;
}
