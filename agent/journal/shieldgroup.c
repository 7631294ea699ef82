/* SPDX-License-Identifier: MIT */
#include "journal/shieldgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "files/slurp.h"
#include "files/writefile.h"

#define CONTROLLERS  SHIELDGROUP_ROOT "/cgroup.subtree_control"
#define ROOT_PROCS   SHIELDGROUP_ROOT "/cgroup.procs"
#define PATH_BYTES   256
#define ANSWER_BYTES 192
#define REMOVE_TRIES 200

static char answer[ANSWER_BYTES];

static const char *path_below(const char *root, const char *path, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "%s%s", root, path);
	return out;
}

static int write_below(const char *root, const char *path, const char *value)
{
	char whole[PATH_BYTES];

	return writefile(path_below(root, path, whole), value);
}

/* The first line. 0 or -errno. */
static int read_line(const char *root, const char *path, char *text, size_t size)
{
	char whole[PATH_BYTES];
	long n = slurp(path_below(root, path, whole), text, size);

	if (n < 0)
		return (int)n;
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

int shieldgroup_has_cpusets(const char *root)
{
	char text[512], *word, *rest = text;
	int err = read_line(root, CONTROLLERS, text, sizeof(text));

	if (err)
		return err;
	while ((word = strsep(&rest, " ")))
		if (strcmp(word, "cpuset") == 0)
			return 1;
	return 0;
}

int shieldgroup_set_cpusets(const char *root, bool on)
{
	return write_below(root, CONTROLLERS, on ? "+cpuset" : "-cpuset");
}

bool shieldgroup_exists(const char *root)
{
	char path[PATH_BYTES];

	return access(path_below(root, SHIELDGROUP_PATH, path), F_OK) == 0;
}

/* What the kernel made of it; a partition that it does not keep is "isolated invalid
 * (why)". */
static int check(const char *root, const char *file, const char *one, const char *other)
{
	int err = read_line(root, file, answer, sizeof(answer));

	if (err)
		return err;
	return strcmp(answer, one) == 0 || strcmp(answer, other) == 0
		       ? 0
		       : SHIELDGROUP_INVALID;
}

static int give_cpus(const char *root, const char *cpus)
{
	const char *const list = SHIELDGROUP_PATH "/cpuset.cpus";
	const char *const kind = SHIELDGROUP_PATH "/cpuset.cpus.partition";
	int err = write_below(root, list, cpus);

	if (!err)
		err = check(root, list, cpus, cpus);
	if (err)
		return err;
	err = write_below(root, kind, "isolated");
	if (err == -EINVAL) /* before Linux 6.1 there is no such kind */
		err = write_below(root, kind, "root");
	return err ? err : check(root, kind, "isolated", "root");
}

int shieldgroup_make(const char *root, const char *cpus)
{
	char path[PATH_BYTES];
	int err;

	if (mkdir(path_below(root, SHIELDGROUP_PATH, path), 0755) < 0)
		return -errno;
	err = give_cpus(root, cpus);
	if (err)
		shieldgroup_remove(root);
	return err;
}

const char *shieldgroup_answer(void)
{
	return answer;
}

int shieldgroup_enter(const char *root)
{
	return write_below(root, SHIELDGROUP_PATH "/cgroup.procs", "0");
}

/* One round; a number that the buffer has cut off has no newline and waits for the next. */
static void empty(const char *root)
{
	char path[PATH_BYTES], text[16384];

	path_below(root, SHIELDGROUP_PATH "/cgroup.procs", path);
	if (slurp(path, text, sizeof(text)) < 0)
		return;
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		write_below(root, ROOT_PROCS, line);
	}
}

int shieldgroup_remove(const char *root)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	char path[PATH_BYTES];
	int err = 0;

	path_below(root, SHIELDGROUP_PATH, path);
	/* an ended process leaves the group when it is gone, not when it has ended */
	for (int tries = 0; tries < REMOVE_TRIES; tries++) {
		empty(root);
		if (rmdir(path) == 0 || errno == ENOENT)
			return 0;
		err = -errno;
		nanosleep(&pause, NULL);
	}
	return err;
}
