/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/tree.h"
#include "tests/check.h"

static char base[64] = "/tmp/rtscope-test-XXXXXX";

static const char *in_base(const char *name)
{
	static char path[4][256];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", base, name);
	return path[turn];
}

static void make_file(const char *name)
{
	int fd = open(in_base(name), O_WRONLY | O_CREAT | O_EXCL, 0600);

	CHECK(fd >= 0);
	close(fd);
}

static void make_dir(const char *name)
{
	CHECK(mkdir(in_base(name), 0700) == 0);
}

static bool is_there(const char *name)
{
	struct stat st;

	return lstat(in_base(name), &st) == 0;
}

static void a_tree_goes_with_all_that_is_in_it(void)
{
	make_dir("rtscope-a");
	make_dir("rtscope-a/b");
	make_dir("rtscope-a/b/c");
	make_file("rtscope-a/b/c/file");
	make_file("rtscope-a/.hidden");

	CHECK(tree_remove(in_base("rtscope-a")) == 0);
	CHECK(!is_there("rtscope-a"));
}

static void links_are_removed_and_not_followed(void)
{
	make_dir("precious");
	make_file("precious/file");
	make_dir("rtscope-b");
	CHECK(symlink("../precious", in_base("rtscope-b/link")) == 0);
	CHECK(symlink("nowhere", in_base("rtscope-b/dangling")) == 0);
	CHECK(symlink("precious", in_base("rtscope-link")) == 0);

	CHECK(tree_remove(in_base("rtscope-b")) == 0);
	CHECK(!is_there("rtscope-b"));
	CHECK(tree_remove(in_base("rtscope-link")) == 0);
	CHECK(!is_there("rtscope-link"));
	CHECK(is_there("precious/file"));
}

static void what_does_not_carry_our_name_is_refused(void)
{
	static const char *const names[] = { "precious",        "precious/",
					     "rtscope-x/..",    "rtscope-x/",
					     "rtscope",         "xrtscope-",
					     "rtscope-x/other", "" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK(tree_remove(in_base(names[i])) == -EINVAL);
	CHECK(tree_remove("") == -EINVAL);
	CHECK(tree_remove("/") == -EINVAL);
	CHECK(is_there("precious/file"));
}

static void none_to_remove_is_no_error(void)
{
	CHECK(tree_remove(in_base("rtscope-none")) == 0);
	CHECK(tree_remove(in_base("missing/rtscope-none")) == 0);
}

static void a_single_file_goes_too(void)
{
	make_file("rtscope-file");
	CHECK(tree_remove(in_base("rtscope-file")) == 0);
	CHECK(!is_there("rtscope-file"));
}

int main(void)
{
	CHECK(mkdtemp(base));
	a_tree_goes_with_all_that_is_in_it();
	links_are_removed_and_not_followed();
	what_does_not_carry_our_name_is_refused();
	none_to_remove_is_no_error();
	a_single_file_goes_too();
	CHECK(tree_remove(base) == 0);
	return 0;
}
