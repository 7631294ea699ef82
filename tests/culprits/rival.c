// SPDX-License-Identifier: MIT
/*
 * rival - what a program can do to a measuring thread, as the load of a virtual board.
 *
 *   rival hog fifo|other PRIORITY CPU BUSY_US EVERY_US TIMES
 *   rival demote NAME          threads of processes of this name become SCHED_OTHER
 *   rival refs WHAT NAME CPU TIMES
 *   rival stop|freeze|trace NAME FOR_US EVERY_US TIMES
 *   rival quota NAME QUOTA_US PERIOD_US CPU BUSY_US
 *
 * hog uses up time; the priority of an ordinary one is its nice value. refs asks the
 * kernel again and again to forget what was accessed (clear_refs: 1), as tools do that
 * estimate working sets, or to track writes (4), as tools do that copy a running process.
 * stop sends SIGSTOP and SIGCONT to a process, freeze puts it into a cgroup that it freezes
 * and thaws, trace stops it as a debugger does: each time for FOR_US. quota puts it into
 * a cgroup that may use QUOTA_US in each PERIOD_US, makes its threads SCHED_OTHER, and
 * uses that time up, for BUSY_US of its own time.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void refuse(const char *what)
{
	perror(what);
	exit(1);
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_us(long us)
{
	const struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		refuse("affinity");
}

/* The system call itself: musl's function does nothing. */
static long set_policy(int pid, int policy, int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return syscall(SYS_sched_setscheduler, pid, policy, &param);
}

/* Some 20 us on a board, in long blocks and with few system calls: it has little to
 * record. */
static void spend_time(void)
{
	for (int i = 0; i < 20; i++)
		__asm__ volatile(".rept 500\n\tnop\n\t.endr");
}

static void hog(char **argv)
{
	const long busy_us = atol(argv[3]), every_us = atol(argv[4]);
	const int priority = atoi(argv[1]);

	stay_on(atoi(argv[2]));
	if (strcmp(argv[0], "fifo") == 0 ? set_policy(0, SCHED_FIFO, priority)
					 : setpriority(PRIO_PROCESS, 0, priority))
		refuse("priority");
	for (int times = atoi(argv[5]); times; times--) {
		const long long end = now_ns() + busy_us * 1000LL;

		while (now_ns() < end)
			spend_time();
		sleep_us(every_us - busy_us);
	}
}

static int is_called(const char *pid, const char *name)
{
	char path[64], comm[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fgets(comm, sizeof(comm), file))
		comm[strcspn(comm, "\n")] = '\0';
	fclose(file);
	return strcmp(comm, name) == 0;
}

/* Calls `act` with the number of each process of this name, and with `what`. */
static void each(const char *name, void (*act)(const char *pid, const char *what),
		 const char *what)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    is_called(entry->d_name, name))
			act(entry->d_name, what);
	if (proc)
		closedir(proc);
}

static void demote(const char *pid, const char *unused)
{
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	(void)unused;
	snprintf(path, sizeof(path), "/proc/%.16s/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			set_policy(atoi(entry->d_name), SCHED_OTHER, 0);
	if (tasks)
		closedir(tasks);
}

static void clear_refs(const char *pid, const char *what)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%.16s/clear_refs", pid);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, what, 1) != 1)
		refuse(path);
	close(fd);
}

#define CGROUPS "/tmp/cgroups"
#define FREEZER CGROUPS "/frozen"
#define LIMITED CGROUPS "/limited"

static void put(const char *path, const char *what)
{
	const int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, what, strlen(what)) < 0)
		refuse(path);
	close(fd);
}

static void stop(const char *pid, const char *on)
{
	if (kill(atoi(pid), *on == '1' ? SIGSTOP : SIGCONT))
		refuse("kill");
}

static void confine(const char *pid, const char *group)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	put(path, pid);
}

static void freeze(const char *unused, const char *on)
{
	(void)unused;
	put(FREEZER "/cgroup.freeze", on);
}

/* A debugger attaches to threads, one by one. */
static void trace(const char *pid, const char *on)
{
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%.16s/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		const int tid = atoi(entry->d_name);

		if (!tid)
			continue;
		if (*on != '1') {
			ptrace(PTRACE_DETACH, tid, NULL, NULL);
		} else if (!ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
			ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
			waitpid(tid, NULL, __WALL);
		}
	}
	if (tasks)
		closedir(tasks);
}

static void hold_back(char **argv, void (*act)(const char *pid, const char *on))
{
	const long for_us = atol(argv[1]), every_us = atol(argv[2]);

	for (int times = atoi(argv[3]); times; times--) {
		each(argv[0], act, "1");
		sleep_us(for_us);
		each(argv[0], act, "0");
		sleep_us(every_us - for_us);
	}
}

static void make_group(const char *group, const char *name)
{
	mkdir(CGROUPS, 0755);
	if (mount("none", CGROUPS, "cgroup2", 0, NULL))
		refuse("cgroup2");
	mkdir(group, 0755);
	each(name, confine, group);
}

static void limit(char **argv)
{
	char most[64], *hogging[] = { "other", "0", argv[3], argv[4], argv[4], "1" };

	make_group(LIMITED, argv[0]);
	put(CGROUPS "/cgroup.subtree_control", "+cpu");
	snprintf(most, sizeof(most), "%.16s %.16s", argv[1], argv[2]);
	put(LIMITED "/cpu.max", most);
	put(LIMITED "/cgroup.procs", "0");
	each(argv[0], demote, NULL);
	hog(hogging);
}

int main(int argc, char **argv)
{
	if (argc == 8 && strcmp(argv[1], "hog") == 0) {
		hog(argv + 2);
	} else if (argc == 3 && strcmp(argv[1], "demote") == 0) {
		each(argv[2], demote, NULL);
	} else if (argc == 6 && strcmp(argv[1], "refs") == 0) {
		stay_on(atoi(argv[4]));
		for (int times = atoi(argv[5]); times; times--)
			each(argv[3], clear_refs, argv[2]);
	} else if (argc == 6 && strcmp(argv[1], "stop") == 0) {
		hold_back(argv + 2, stop);
	} else if (argc == 6 && strcmp(argv[1], "freeze") == 0) {
		make_group(FREEZER, argv[2]);
		hold_back(argv + 2, freeze);
	} else if (argc == 6 && strcmp(argv[1], "trace") == 0) {
		hold_back(argv + 2, trace);
	} else if (argc == 7 && strcmp(argv[1], "quota") == 0) {
		limit(argv + 2);
	} else {
		fprintf(stderr, "usage: rival hog|demote|refs|stop|freeze|trace|quota ...\n");
		return 2;
	}
	return 0;
}
