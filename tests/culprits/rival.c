// SPDX-License-Identifier: MIT
/*
 * rival - what a program can do to a measuring thread, as the load of a virtual board.
 *
 *   rival hog fifo|other PRIORITY CPU BUSY_US EVERY_US TIMES
 *   rival demote NAME          threads of processes of this name become SCHED_OTHER
 *   rival refs WHAT NAME CPU TIMES
 *   rival stop|freeze|trace NAME FOR_US EVERY_US TIMES
 *   rival quota NAME QUOTA_US PERIOD_US CPU BUSY_US
 *   rival rise deadline|fifo|raised|boosted CPU BUSY_US EVERY_US TIMES
 *   rival bpf TRACEPOINT TURNS FOR_US EVERY_US TIMES
 *   rival yield PRIORITY CPU BUSY_US EVERY_US TIMES
 *
 * hog uses up time; the priority of an ordinary one is its nice value. refs asks the
 * kernel again and again to forget what was accessed (clear_refs: 1), as tools do that
 * estimate working sets, or to track writes (4), as tools do that copy a running process.
 * stop sends SIGSTOP and SIGCONT to a process, freeze puts it into a cgroup that it freezes
 * and thaws, trace stops it as a debugger does: each time for FOR_US. quota puts it into
 * a cgroup that may use QUOTA_US in each PERIOD_US, makes its threads SCHED_OTHER, and
 * uses that time up, for BUSY_US of its own time. rise is an ordinary program that gets
 * another policy while it runs, for BUSY_US, in which it never sleeps: by itself, by
 * another process (raised), or because a thread waits for its lock (boosted). yield
 * gives way again and again, to nobody. bpf attaches a program to a tracepoint, for
 * FOR_US each time, that counts up to TURNS, and stays until it is killed.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

static void spend_until(long long end)
{
	while (now_ns() < end)
		spend_time();
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
		spend_until(now_ns() + busy_us * 1000LL);
		sleep_us(every_us - busy_us);
	}
}

struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* A deadline is for threads of all CPUs: this one stays where it runs. */
static void take_deadline(int cpu)
{
	struct attributes attr = { .size = sizeof(attr), .policy = SCHED_DEADLINE };
	cpu_set_t all;

	stay_on(cpu);
	memset(&all, 0xff, sizeof(all));
	if (sched_setaffinity(0, sizeof(all), &all))
		refuse("affinity");
	attr.runtime = 8000000;
	attr.deadline = attr.period = 10000000;
	if (syscall(SYS_sched_setattr, 0, &attr, 0))
		refuse("deadline");
}

static void rise_by_itself(const char *how, int cpu, long busy_us)
{
	const long long begin = now_ns();

	stay_on(cpu);
	spend_until(begin + 100000);
	if (strcmp(how, "deadline") == 0)
		take_deadline(cpu);
	else if (set_policy(0, SCHED_FIFO, 90))
		refuse("fifo");
	spend_until(now_ns() + busy_us * 1000LL);
	set_policy(0, SCHED_OTHER, 0);
}

/* Another process, on another CPU, raises it and lowers it again. */
static void be_raised(int cpu, long busy_us)
{
	const pid_t child = fork();

	if (!child) {
		stay_on(cpu);
		for (;;)
			spend_time();
	}
	stay_on(!cpu);
	sleep_us(2000);
	set_policy(child, SCHED_FIFO, 85);
	sleep_us(busy_us);
	set_policy(child, SCHED_OTHER, 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* A thread of a real-time priority waits for a lock that it holds. */
static void be_boosted(int cpu, long busy_us)
{
	uint32_t *lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	if (lock == MAP_FAILED)
		refuse("mmap");
	stay_on(cpu);
	if (syscall(SYS_futex, lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0))
		refuse("futex");
	child = fork();
	if (!child) {
		stay_on(!cpu);
		set_policy(0, SCHED_FIFO, 80);
		sleep_us(1000);
		syscall(SYS_futex, lock, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
		syscall(SYS_futex, lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
		_exit(0);
	}
	spend_until(now_ns() + 1000000 + busy_us * 1000LL);
	syscall(SYS_futex, lock, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
	waitpid(child, NULL, 0);
	munmap(lock, 4096);
}

static void rise(char **argv)
{
	const int cpu = atoi(argv[1]);
	const long busy_us = atol(argv[2]), every_us = atol(argv[3]);

	for (int times = atoi(argv[4]); times; times--) {
		if (strcmp(argv[0], "raised") == 0)
			be_raised(cpu, busy_us);
		else if (strcmp(argv[0], "boosted") == 0)
			be_boosted(cpu, busy_us);
		else
			rise_by_itself(argv[0], cpu, busy_us);
		sleep_us(every_us - busy_us);
	}
}

static void yield(char **argv)
{
	stay_on(atoi(argv[1]));
	if (set_policy(0, SCHED_FIFO, atoi(argv[0])))
		refuse("priority");
	for (int times = atoi(argv[4]); times; times--) {
		const long long end = now_ns() + atol(argv[2]) * 1000LL;

		while (now_ns() < end)
			sched_yield();
		sleep_us(atol(argv[3]) - atol(argv[2]));
	}
}

/* It reads the clock so often; more instructions take the kernel long to check. */
static int load_program(int turns)
{
	const struct bpf_insn program[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 6, .imm = 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ktime_get_ns },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 6, .imm = 1 },
		{ .code = BPF_JMP | BPF_JLT | BPF_K, .dst_reg = 6, .off = -3,
		  .imm = turns },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attr.insn_cnt = sizeof(program) / sizeof(program[0]);
	attr.insns = (uintptr_t)program;
	attr.license = (uintptr_t)"GPL";
	strcpy(attr.prog_name, "count_events");
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static void attach(char **argv)
{
	const long for_us = atol(argv[2]), every_us = atol(argv[3]);
	const int program = load_program(atoi(argv[1]));
	union bpf_attr attr;

	if (program < 0)
		refuse("program");
	for (int times = atoi(argv[4]); times; times--) {
		memset(&attr, 0, sizeof(attr));
		attr.raw_tracepoint.name = (uintptr_t)argv[0];
		attr.raw_tracepoint.prog_fd = (uint32_t)program;
		const int fd = (int)syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attr,
					    sizeof(attr));

		if (fd < 0)
			refuse(argv[0]);
		sleep_us(for_us);
		close(fd);
		sleep_us(every_us - for_us);
	}
	pause(); /* its symbol is read at the end */
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
	} else if (argc == 7 && strcmp(argv[1], "rise") == 0) {
		rise(argv + 2);
	} else if (argc == 7 && strcmp(argv[1], "bpf") == 0) {
		attach(argv + 2);
	} else if (argc == 7 && strcmp(argv[1], "yield") == 0) {
		yield(argv + 2);
	} else {
		fprintf(stderr, "usage: rival hog|demote|refs|stop|freeze|trace|quota|rise|"
				"bpf|yield ...\n");
		return 2;
	}
	return 0;
}
