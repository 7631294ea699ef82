/* SPDX-License-Identifier: MIT */
#include "journal/memgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "files/slurp.h"
#include "files/writefile.h"

#define V1_MOUNT "/sys/fs/cgroup/memory"
#define V2_MOUNT "/sys/fs/cgroup"

static bool is_v2(void)
{
	return access(V2_MOUNT "/cgroup.controllers", F_OK) == 0;
}

static void group_path(int owner, const char *file, char *path, size_t size)
{
	snprintf(path, size, "%s/rtscope.%d%s%s", is_v2() ? V2_MOUNT : V1_MOUNT, owner,
		 file ? "/" : "", file ? file : "");
}

static int write_group(int owner, const char *file, const char *value)
{
	char path[128];

	group_path(owner, file, path, sizeof(path));
	return writefile(path, value);
}

int memgroup_make(int owner, const char *limit)
{
	char path[128];
	int err;

	group_path(owner, NULL, path, sizeof(path));
	if (mkdir(path, 0755) < 0)
		return -errno;

	err = write_group(owner, is_v2() ? "memory.max" : "memory.limit_in_bytes",
			  limit);
	if (err) {
		rmdir(path);
		/* v2: the file is missing when the controller is not enabled for the root */
		return err == -ENOENT ? -EOPNOTSUPP : err;
	}
	/* Without swap for the group it runs out instead of paging; not every kernel has
	 * the files, and then there is usually no swap either. */
	write_group(owner, is_v2() ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
		    is_v2() ? "0" : limit);
	return 0;
}

bool memgroup_exists(int owner)
{
	char path[128];

	group_path(owner, NULL, path, sizeof(path));
	return access(path, F_OK) == 0;
}

int memgroup_enter(int owner)
{
	return write_group(owner, "cgroup.procs", "0");
}

int64_t memgroup_oom_kills(int owner)
{
	char path[128], text[1024];
	const char *field;

	group_path(owner, is_v2() ? "memory.events" : "memory.oom_control", path,
		   sizeof(path));
	if (slurp(path, text, sizeof(text)) < 0)
		return -1;
	field = strstr(text, "oom_kill ");
	return field ? strtoll(field + strlen("oom_kill "), NULL, 10) : -1;
}

/* One round; a number that the buffer has cut off has no newline and waits for the next. */
static void kill_all_in(int owner)
{
	char path[128], text[16384];

	group_path(owner, "cgroup.procs", path, sizeof(path));
	if (slurp(path, text, sizeof(text)) < 0)
		return;
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		pid_t pid = (pid_t)atoi(line);

		/* 0 is a process of another pid namespace; as a target it would be us */
		if (pid > 0)
			kill(pid, SIGKILL);
	}
}

int memgroup_remove(int owner)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	char path[128];

	group_path(owner, NULL, path, sizeof(path));
	/* killed processes leave the group when they are gone, not when they are killed */
	for (int tries = 0; tries < 200; tries++) {
		kill_all_in(owner);
		if (rmdir(path) == 0 || errno == ENOENT)
			return 0;
		nanosleep(&pause, NULL);
	}
	return -EBUSY;
}
