/* SPDX-License-Identifier: MIT */
/* A directory that stands for a machine's root, with the settings that are changed. */
#ifndef FAKEMACHINE_H
#define FAKEMACHINE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files/slurp.h"
#include "journal/journal.h"
#include "tests/check.h"

#define GOVERNOR(cpu)                                                                  \
	"/root/sys/devices/system/cpu/cpu" #cpu "/cpufreq/scaling_governor"
#define RT_RUNTIME "/root/proc/sys/kernel/sched_rt_runtime_us"

#define HUGEPAGE "/root/sys/kernel/mm/transparent_hugepage/enabled"

static char base[64] = "/tmp/rtscope-test-XXXXXX";
static char root[128], dir[128];
static char told[256];

static inline const char *path_of(const char *name)
{
	static char path[4][256];
	static int turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], sizeof(path[turn]), "%s%s", base, name);
	return path[turn];
}

static inline void write_text(const char *name, const char *text)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static inline const char *text_of(const char *name)
{
	static char text[4096];

	CHECK(slurp(path_of(name), text, sizeof(text)) >= 0);
	return text;
}

static inline bool knob_holds(const char *name, const char *value)
{
	const char *text = text_of(name);

	return strncmp(text, value, strlen(value)) == 0 &&
	       strcspn(text, "\n") == strlen(value);
}

static inline const char *own_journal(void)
{
	static char name[64];

	snprintf(name, sizeof(name), "/run/journal.%d", (int)getpid());
	return name;
}

static inline int journals(void)
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

static inline void make_machine(void)
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
static inline void reset(void)
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

static inline void note(void *context, const struct journal_entry *entry)
{
	CHECK(context == told);
	strcat(told, entry->knob);
	strcat(told, " ");
}

static inline int replay(void)
{
	return journal_replay(dir, root, note, told);
}

static inline int set(struct journal *j, const char *knob, int index, const char *value)
{
	const struct knob_place place = { root, knob, index };

	return journal_set_knob(j, dir, &place, value);
}

/* In a process of its own, which then ends as if killed. */
static inline void set_and_die(const char *knob, int index, const char *value)
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

#endif
