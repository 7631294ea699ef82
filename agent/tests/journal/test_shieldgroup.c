/* SPDX-License-Identifier: MIT */
/* shieldgroup, by way of the journal: made and removed, and what fails at each step. */
#include <errno.h>
#include <sys/syscall.h>

#include "files/tree.h"
#include "journal/shieldgroup.h"
#include "tests/check.h"
#include "tests/fakemachine.h"

#define CGROUP      "/root/sys/fs/cgroup"
#define CONTROLLERS CGROUP "/cgroup.subtree_control"
#define GROUP       CGROUP "/rtscope.shield"
#define CPUS        GROUP "/cpuset.cpus"
#define PARTITION   GROUP "/cpuset.cpus.partition"

/* What the fake kernel does next. */
static const char *refused, *lacks, *dull;
static int busy;
static char moved[64];

static const char *const files[] = { CPUS, PARTITION, GROUP "/cgroup.procs" };

static bool is_group(const char *path)
{
	return strstr(path, "/rtscope.shield") != NULL;
}

/* The kernel fills a group when it is made, and a plain directory has nothing. */
int mkdir(const char *path, mode_t mode)
{
	int err = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);

	for (size_t i = 0; !err && is_group(path) && i < 3; i++) {
		if (dull && strcmp(dull, files[i]) == 0)
			CHECK(symlink("/dev/null", path_of(files[i])) == 0);
		else if (!lacks || strcmp(lacks, files[i]) != 0)
			write_text(files[i], i < 2 ? "\n" : "11\n12\n");
	}
	return err;
}

/* It removes a group with its files, unless somebody is in it. */
int rmdir(const char *path)
{
	if (is_group(path) && access(path, F_OK) == 0) {
		if (busy-- > 0) {
			errno = EBUSY;
			return -1;
		}
		for (size_t i = 0; i < 3; i++)
			unlink(path_of(files[i]));
	}
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

ssize_t write(int fd, const void *text, size_t size)
{
	char link[64], target[256] = "";

	if (refused && size == strlen(refused) && memcmp(text, refused, size) == 0) {
		errno = EINVAL;
		return -1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, target, sizeof(target) - 1) > 0 &&
	    strstr(target, "/sys/fs/cgroup/cgroup.procs"))
		snprintf(moved + strlen(moved), sizeof(moved) - strlen(moved), "%.*s ",
			 (int)size, (const char *)text);
	/* the kernel takes +cpuset and shows cpuset */
	if (size && *(const char *)text == '+')
		return syscall(SYS_write, fd, (const char *)text + 1, size - 1) + 1;
	if (size && *(const char *)text == '-')
		return (ssize_t)size;
	return syscall(SYS_write, fd, text, size);
}

static void begin(struct journal *j)
{
	reset();
	refused = lacks = dull = NULL;
	busy = 0;
	write_text(CONTROLLERS, "cpu memory\n");
	write_text(CGROUP "/cgroup.procs", "");
	moved[0] = '\0';
	journal_init(j);
}

static bool is_there(void)
{
	return access(path_of(GROUP), F_OK) == 0;
}

static void the_group_comes_after_the_controller_and_goes_before_it(void)
{
	struct journal j;

	begin(&j);
	CHECK(set(&j, "cgroup_cpusets", 0, "present") == 0);
	CHECK(set(&j, "shield", 0, "2-3") == 0);
	CHECK(strcmp(text_of(own_journal()), "cgroup_cpusets 0 absent\n"
					     "shield 0 absent\n") == 0);
	CHECK(strcmp(text_of(CPUS), "2-3") == 0);
	CHECK(strcmp(text_of(PARTITION), "isolated") == 0);

	CHECK(journal_restore(&j, root, note, told) == 0);
	CHECK(strcmp(told, "shield cgroup_cpusets ") == 0);
	CHECK(!is_there() && journals() == 0);
	CHECK(strstr(text_of(CONTROLLERS), "cpuset") == NULL);
	CHECK(strcmp(moved, "11 12 ") == 0);
}

static void a_kernel_without_isolated_partitions_gives_a_root_of_scheduling(void)
{
	struct journal j;

	begin(&j);
	refused = "isolated";
	CHECK(set(&j, "shield", 0, "1") == 0);
	CHECK(strcmp(text_of(PARTITION), "root") == 0);
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
}

static void what_fails_leaves_no_group_and_no_entry(void)
{
	static const struct {
		const char *refused, *lacks, *dull;
		int err;
	} cases[] = {
		{ "1", NULL, NULL, -EINVAL },
		{ "root", NULL, NULL, 0 },
		{ NULL, CPUS, NULL, -ENOENT },
		{ NULL, PARTITION, NULL, -ENOENT },
		{ NULL, NULL, CPUS, SHIELDGROUP_INVALID },
		{ NULL, NULL, PARTITION, SHIELDGROUP_INVALID },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct journal j;

		begin(&j);
		refused = cases[i].refused;
		lacks = cases[i].lacks;
		dull = cases[i].dull;
		CHECK(set(&j, "governor", 0, "performance") == 0);
		CHECK(set(&j, "shield", 0, "1") == cases[i].err);
		CHECK(is_there() == (cases[i].err == 0));
		CHECK(cases[i].err == 0 || journal_take_back(&j, root) == 0);
		refused = NULL;
		CHECK(journal_restore(&j, root, note, told) == 0);
		CHECK(strcmp(told, cases[i].err ? "governor " : "shield governor ") ==
		      0);
		CHECK(!is_there() && knob_holds(GOVERNOR(0), "schedutil"));
	}
}

static void a_machine_without_version_2_has_neither(void)
{
	struct journal j;

	begin(&j);
	CHECK(unlink(path_of(CONTROLLERS)) == 0);
	CHECK(set(&j, "cgroup_cpusets", 0, "present") == -ENOENT);
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
}

static void a_group_that_somebody_else_made_stays(void)
{
	struct journal j;

	begin(&j);
	CHECK(mkdir(path_of(GROUP), 0755) == 0);
	CHECK(set(&j, "shield", 0, "1") == -EEXIST);
	CHECK(journal_take_back(&j, root) == 0);
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
	CHECK(is_there());
	CHECK(rmdir(path_of(GROUP)) == 0);
}

static void a_group_that_is_busy_is_tried_again(void)
{
	struct journal j;

	begin(&j);
	CHECK(set(&j, "shield", 0, "1") == 0);
	busy = 3;
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
	CHECK(!is_there() && busy < 0);
}

static void of_a_killed_process_it_is_removed_by_the_next(void)
{
	struct journal j;

	begin(&j);
	set_and_die("shield", 0, "1");
	CHECK(is_there());
	CHECK(replay() == 0);
	CHECK(strcmp(told, "shield ") == 0);
	CHECK(!is_there() && journals() == 0);
}

static void there_is_one_for_the_whole_machine(void)
{
	struct journal j;

	begin(&j);
	set_and_die("shield", 0, "1");
	CHECK(set(&j, "shield", 0, "2") == JOURNAL_HELD);
	CHECK(journal_restore(&j, root, NULL, NULL) == 0);
	CHECK(replay() == 0);
}

int main(void)
{
	make_machine();
	CHECK(mkdir(path_of("/root/sys/fs"), 0700) == 0);
	CHECK(mkdir(path_of(CGROUP), 0700) == 0);
	the_group_comes_after_the_controller_and_goes_before_it();
	a_kernel_without_isolated_partitions_gives_a_root_of_scheduling();
	what_fails_leaves_no_group_and_no_entry();
	a_machine_without_version_2_has_neither();
	a_group_that_somebody_else_made_stays();
	a_group_that_is_busy_is_tried_again();
	of_a_killed_process_it_is_removed_by_the_next();
	there_is_one_for_the_whole_machine();
	CHECK(tree_remove(base) == 0);
	return 0;
}
