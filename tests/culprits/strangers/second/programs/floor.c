// SPDX-License-Identifier: MIT
/*
 * floor KIND: 0.3 s after its start, three times, something that a user or an operator
 * does to programs: to the measured thread, or to others beside it.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB    (1UL << 20)
#define TIMES  3
#define GAP_US 50000

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void keep_to(pid_t id, int cpu)
{
	unsigned long mask = 1UL << cpu;

	syscall(SYS_sched_setaffinity, id, sizeof(mask), &mask);
}

static void schedule_as(pid_t id, int policy, int priority)
{
	struct sched_param p = { .sched_priority = priority };

	if (syscall(SYS_sched_setscheduler, id, policy, &p))
		perror("sched_setscheduler");
}

static void chew(long us)
{
	int64_t until = now_ns() + us * 1000;

	while (now_ns() < until)
		;
}

static pid_t child_named(const char *name, int cpu)
{
	pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	keep_to(0, cpu);
	return 0;
}

/* The measured thread, and its process. */
static pid_t guest, guests_process;

static int is_guest(pid_t id)
{
	struct sched_param p;
	unsigned long mask = 0;

	syscall(SYS_sched_getaffinity, id, sizeof(mask), &mask);
	return syscall(SYS_sched_getscheduler, id) == SCHED_FIFO &&
	       !syscall(SYS_sched_getparam, id, &p) && p.sched_priority == 50 &&
	       mask == 2;
}

static void find_guest_in(pid_t process)
{
	char path[64], name[32] = "";
	struct dirent *one;
	DIR *tasks;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", process);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return;
	read(fd, name, sizeof(name) - 1);
	close(fd);
	if (strncmp(name, "rtscope", 7))
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", process);
	tasks = opendir(path);
	while (tasks && (one = readdir(tasks))) {
		pid_t id = atoi(one->d_name);

		if (id && is_guest(id)) {
			guest = id;
			guests_process = process;
		}
	}
	if (tasks)
		closedir(tasks);
}

static void find_guest(void)
{
	struct dirent *one;
	DIR *all;

	if (guest)
		return;
	all = opendir("/proc");
	while ((one = readdir(all)))
		if (isdigit((unsigned char)one->d_name[0]))
			find_guest_in(atoi(one->d_name));
	closedir(all);
	if (!guest) {
		puts("floor: nobody is measured");
		exit(1);
	}
}

/* Somebody types `chrt -o -p 0` on the wrong thread. */
static pid_t chewer;

static void bring_chewer(void)
{
	chewer = child_named("chewer", 1);
	if (!chewer)
		for (;;)
			chew(1000);
}

static void demote(void)
{
	find_guest();
	schedule_as(guest, SCHED_OTHER, 0);
	usleep(12000);
	schedule_as(guest, SCHED_FIFO, 50);
}

/* Or moves it to a CPU on which another one is busy. */
static void move(void)
{
	find_guest();
	prctl(PR_SET_NAME, "usurper");
	schedule_as(0, SCHED_FIFO, 60);
	keep_to(guest, 0);
	chew(1600);
	keep_to(guest, 1);
	schedule_as(0, SCHED_OTHER, 0);
}

/* A program that computes becomes FIFO 80 for a while. */
static void raise_other(void)
{
	pid_t grunt = child_named("grunt", 1);

	if (!grunt)
		for (;;)
			chew(1000);
	usleep(8000);
	schedule_as(grunt, SCHED_FIFO, 80);
	usleep(1500);
	schedule_as(grunt, SCHED_OTHER, 0);
	kill(grunt, SIGKILL);
	waitpid(grunt, 0, 0);
}

/* A debugger looks at the measured thread. */
static void attach(void)
{
	find_guest();
	prctl(PR_SET_NAME, "watchmaker");
	if (ptrace(PTRACE_SEIZE, guest, 0, 0) ||
	    ptrace(PTRACE_INTERRUPT, guest, 0, 0)) {
		perror("ptrace");
		return;
	}
	waitpid(guest, 0, __WALL);
	usleep(2000);
	ptrace(PTRACE_DETACH, guest, 0, 0);
}

/* Its control group is frozen. */
static void write_word(const char *path, const char *word)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, word, strlen(word)) < 0)
		perror(path);
	close(fd);
}

static void freeze(void)
{
	char id[16];

	find_guest();
	prctl(PR_SET_NAME, "warden");
	mkdir("/sys/fs/cgroup/ward", 0755);
	snprintf(id, sizeof(id), "%d", guests_process);
	write_word("/sys/fs/cgroup/ward/cgroup.procs", id);
	write_word("/sys/fs/cgroup/ward/cgroup.freeze", "1");
	usleep(2000);
	write_word("/sys/fs/cgroup/ward/cgroup.freeze", "0");
	write_word("/sys/fs/cgroup/cgroup.procs", id);
}

/* Or stopped by a signal. */
static void halt(void)
{
	find_guest();
	prctl(PR_SET_NAME, "halter");
	kill(guests_process, SIGSTOP);
	usleep(2500);
	kill(guests_process, SIGCONT);
}

/* The same to another one: nobody else waits. */
static void halt_other(void)
{
	kill(chewer, SIGSTOP);
	usleep(2500);
	kill(chewer, SIGCONT);
}

/* Many who sleep until the same instant. */
static volatile int64_t instant_ns[TIMES];
static int sleepers_policy;

static void *sleeper(void *unused)
{
	prctl(PR_SET_NAME, "sleeper");
	if (sleepers_policy)
		schedule_as(0, sleepers_policy, 40);
	for (int i = 0; i < TIMES; i++) {
		struct timespec until;

		while (!instant_ns[i])
			usleep(5000);
		until.tv_sec = instant_ns[i] / 1000000000;
		until.tv_nsec = instant_ns[i] % 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
	}
	pause();
	return unused;
}

static void start_many(int count, void *(*run)(void *), int cpu)
{
	pthread_attr_t attr;
	pthread_t thread;

	keep_to(0, cpu);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32768);
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread, &attr, run, 0))
			perror("pthread_create");
	keep_to(0, 0);
}

static void bring_sleepers(void)
{
	int64_t now = now_ns();

	for (int i = 0; i < TIMES; i++)
		instant_ns[i] = now + 320000000 + i * GAP_US * 1000L;
	start_many(sleepers_policy ? 180 : 320, sleeper, 1);
}

static void bring_fifo_sleepers(void)
{
	sleepers_policy = SCHED_FIFO;
	bring_sleepers();
}

static void nothing(void)
{
}

/* Timers of one process that are due together. */
#define ALARMS 300
static timer_t alarms[ALARMS];

static void bring_alarms(void)
{
	struct rlimit many = { 4000, 4000 };
	struct sigevent how = { .sigev_notify = SIGEV_SIGNAL };
	sigset_t set;

	prctl(PR_SET_NAME, "alarmist");
	setrlimit(RLIMIT_SIGPENDING, &many);
	how.sigev_signo = SIGRTMIN + 2;
	sigemptyset(&set);
	sigaddset(&set, how.sigev_signo);
	sigprocmask(SIG_BLOCK, &set, 0);
	for (int i = 0; i < ALARMS; i++)
		if (timer_create(CLOCK_MONOTONIC, &how, &alarms[i]))
			perror("timer_create");
}

static void ring_alarms(void)
{
	int64_t at = now_ns() + 8000000;
	struct itimerspec when = { 0 };
	struct timespec none = { 0 };
	sigset_t set;

	when.it_value.tv_sec = at / 1000000000;
	when.it_value.tv_nsec = at % 1000000000;
	keep_to(0, 1);
	for (int i = 0; i < ALARMS; i++)
		timer_settime(alarms[i], TIMER_ABSTIME, &when, 0);
	while (now_ns() < at + 4000000)
		;
	keep_to(0, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 2);
	while (sigtimedwait(&set, 0, &none) > 0)
		;
}

/* Many who poll the same event. */
static int event;

static void *listener(void *unused)
{
	prctl(PR_SET_NAME, "listener");
	for (;;) {
		struct pollfd one = { .fd = event, .events = POLLIN };

		poll(&one, 1, -1);
		usleep(20000);
	}
	return unused;
}

static void bring_crowd(void)
{
	event = eventfd(0, 0);
	start_many(420, listener, 0);
}

static void herald(void)
{
	uint64_t one = 1;

	prctl(PR_SET_NAME, "herald");
	keep_to(0, 1);
	write(event, &one, sizeof(one));
	usleep(1000);
	read(event, &one, sizeof(one));
	keep_to(0, 0);
}

/* A real-time program ends, and its memory is freed. */
static int leave[2];

static void bring_leavers(void)
{
	pipe(leave);
	for (int i = 0; i < TIMES; i++) {
		if (child_named("leaver", 0) == 0) {
			char *area = mmap(0, 20 * MIB, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			     word;

			madvise(area, 20 * MIB, MADV_NOHUGEPAGE);
			for (unsigned long at = 0; at < 20 * MIB; at += 4096)
				area[at] = 1;
			read(leave[0], &word, 1);
			schedule_as(0, SCHED_FIFO, 60);
			keep_to(0, 1);
			_exit(0);
		}
	}
}

static void let_leave(void)
{
	write(leave[1], "x", 1);
}

/* A program that takes another name while it computes. */
static void rename_self(void)
{
	keep_to(0, 1);
	prctl(PR_SET_NAME, "alpha");
	schedule_as(0, SCHED_FIFO, 70);
	chew(200);
	prctl(PR_SET_NAME, "omega");
	chew(900);
	schedule_as(0, SCHED_OTHER, 0);
	keep_to(0, 0);
}

static const struct {
	const char *name;
	void (*act)(void);
	void (*ready)(void);
} kinds[] = {
	{ "demote", demote, bring_chewer },
	{ "move", move },
	{ "raise", raise_other },
	{ "attach", attach },
	{ "freeze", freeze },
	{ "halt", halt },
	{ "halt-other", halt_other, bring_chewer },
	{ "sleepers", nothing, bring_sleepers },
	{ "fifo-sleepers", nothing, bring_fifo_sleepers },
	{ "alarms", ring_alarms, bring_alarms },
	{ "crowd", herald, bring_crowd },
	{ "leave", let_leave, bring_leavers },
	{ "rename", rename_self },
};

int main(int argc, char **argv)
{
	int64_t until = now_ns() + 300000000;
	unsigned int kind = 0;

	if (argc < 2)
		return 2;
	keep_to(0, 0);
	while (strcmp(kinds[kind].name, argv[1]))
		if (++kind == sizeof(kinds) / sizeof(kinds[0]))
			return 2;
	if (kinds[kind].ready)
		kinds[kind].ready();
	if (now_ns() < until)
		usleep((until - now_ns()) / 1000);
	for (int i = 0; i < TIMES; i++) {
		kinds[kind].act();
		usleep(GAP_US);
	}
	if (chewer)
		kill(chewer, SIGKILL);
	else if (kinds[kind].ready)
		pause();
	return 0;
}
