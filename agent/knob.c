/* SPDX-License-Identifier: MIT */
#include "knob.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memgroup.h"
#include "slurp.h"

/* A memory cgroup made for a load; its old value is "absent" unless it is not ours. */
#define MEMORY_GROUP "memory_group"

static const struct {
	const char *name;
	const char *path;
	const char
		*path_after_cpu; /* a file per CPU: its number goes between the two */
} knobs[] = {
	{ "governor", "/sys/devices/system/cpu/cpu", "/cpufreq/scaling_governor" },
	{ "rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us", NULL },
	{ MEMORY_GROUP, NULL, NULL },
};

#define KNOBS (sizeof(knobs) / sizeof(knobs[0]))

static int find(const char *name)
{
	for (size_t i = 0; i < KNOBS; i++)
		if (strcmp(knobs[i].name, name) == 0)
			return (int)i;
	return -1;
}

bool knob_known(const char *name)
{
	return find(name) >= 0;
}

bool knob_is_per_cpu(const char *name)
{
	int i = find(name);

	return i >= 0 && knobs[i].path_after_cpu;
}

bool knob_value_ok(const char *value)
{
	size_t size = strlen(value);

	if (size == 0 || size >= KNOB_VALUE_MAX)
		return false;
	for (; *value; value++)
		if (!isalnum((unsigned char)*value) && !strchr("-_.", *value))
			return false;
	return true;
}

static int path_of(const struct knob_place *place, char *path, size_t size)
{
	int i = find(place->name);

	if (i < 0 || !knobs[i].path)
		return -EINVAL;
	if (knobs[i].path_after_cpu)
		snprintf(path, size, "%s%s%d%s", place->root, knobs[i].path,
			 place->index, knobs[i].path_after_cpu);
	else
		snprintf(path, size, "%s%s", place->root, knobs[i].path);
	return 0;
}

int knob_read(const struct knob_place *place, char value[KNOB_VALUE_MAX])
{
	char path[256];
	long n;
	int err;

	if (strcmp(place->name, MEMORY_GROUP) == 0) {
		snprintf(value, KNOB_VALUE_MAX,
			 memgroup_exists(place->index) ? "present" : "absent");
		return 0;
	}
	err = path_of(place, path, sizeof(path));
	if (err)
		return err;
	n = slurp(path, value, KNOB_VALUE_MAX);
	if (n < 0)
		return (int)n;
	value[strcspn(value, "\n")] = '\0';
	return 0;
}

static int write_file(const char *path, const char *value)
{
	/* O_TRUNC as a shell's redirection: it matters for plain files only */
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, value, strlen(value));
	if (n < 0)
		n = -errno;
	close(fd);
	return n < 0 ? (int)n : 0;
}

int knob_write(const struct knob_place *place, const char *value)
{
	char path[256], got[KNOB_VALUE_MAX];
	int err;

	if (strcmp(place->name, MEMORY_GROUP) == 0)
		return strcmp(value, "absent") == 0
			       ? memgroup_remove(place->index)
			       : memgroup_make(place->index, value);

	err = path_of(place, path, sizeof(path));
	if (!err)
		err = write_file(path, value);
	if (!err)
		err = knob_read(place, got);
	if (!err && strcmp(got, value) != 0)
		err = -EIO;
	return err;
}
