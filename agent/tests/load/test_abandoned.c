/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load/abandoned.h"
#include "tests/check.h"

#define MAGIC UINT64_C(0x6b73617463737472)

static char base[64] = "/tmp/rtscope-test-XXXXXX";

static const char *path_of(int pid)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/rtscope-task.%d", base, pid);
	return path;
}

/* A file of statistics; returns it open, so that a test may lock it. */
static int make_file(int in_name, uint64_t magic, uint64_t pid, uint64_t closed)
{
	const uint64_t word[11] = { [0] = magic, [7] = pid, [10] = closed };
	int fd = open(path_of(in_name), O_RDWR | O_CREAT | O_EXCL, 0600);

	CHECK(write(fd, word, sizeof(word)) == (ssize_t)sizeof(word));
	return fd;
}

static bool is_there(int pid)
{
	struct stat st;

	return lstat(path_of(pid), &st) == 0;
}

static void end(int pid)
{
	const struct procstat process = { .pid = pid };
	struct abandoned a = { .count = 0 };

	abandoned_note(&a, &process);
	abandoned_remove(&a, base);
}

static void the_file_of_a_program_that_was_ended_goes(void)
{
	close(make_file(40, MAGIC, 40, 0));
	close(make_file(41, MAGIC, 41, 0));
	end(40);

	CHECK(!is_there(40));
	CHECK(is_there(41));
}

static void a_file_that_a_process_holds_stays(void)
{
	int fd = make_file(42, MAGIC, 42, 0);

	CHECK(flock(fd, LOCK_EX) == 0);
	end(42);
	CHECK(is_there(42));
	close(fd);
	end(42);
	CHECK(!is_there(42));
}

static void a_file_that_its_program_closed_and_kept_stays(void)
{
	close(make_file(43, MAGIC, 43, 1));
	end(43);

	CHECK(is_there(43));
}

static void what_is_no_file_of_this_process_stays(void)
{
	close(make_file(44, MAGIC + 1, 44, 0));
	close(make_file(45, MAGIC, 46, 0));
	CHECK(mkfifo(path_of(47), 0600) == 0);
	end(44);
	end(45);
	end(47);

	CHECK(is_there(44));
	CHECK(is_there(45));
	CHECK(is_there(47));
}

static void links_are_not_followed(void)
{
	char target[128];

	snprintf(target, sizeof(target), "%s/rtscope-task.48", base);
	close(make_file(48, MAGIC, 49, 0));
	CHECK(symlink(target, path_of(49)) == 0);
	end(49);

	CHECK(is_there(48));
	CHECK(is_there(49));
}

static void processes_beyond_the_limit_are_left_out(void)
{
	struct abandoned a = { .count = 0 };

	for (int pid = 1; pid <= ABANDONED_PROCESSES + 10; pid++) {
		const struct procstat process = { .pid = pid };

		abandoned_note(&a, &process);
	}
	CHECK(a.count == ABANDONED_PROCESSES);
	CHECK(a.pid[ABANDONED_PROCESSES - 1] == ABANDONED_PROCESSES);
}

int main(void)
{
	CHECK(mkdtemp(base) != NULL);
	the_file_of_a_program_that_was_ended_goes();
	a_file_that_a_process_holds_stays();
	a_file_that_its_program_closed_and_kept_stays();
	what_is_no_file_of_this_process_stays();
	links_are_not_followed();
	processes_beyond_the_limit_are_left_out();
	for (int pid = 40; pid < 50; pid++)
		unlink(path_of(pid));
	return rmdir(base) != 0;
}
