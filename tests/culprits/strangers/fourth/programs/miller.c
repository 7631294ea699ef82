// SPDX-License-Identifier: MIT
/*
 * miller KIND: 0.3 s after its start, three times, something that keeps CPU 1.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMES  3
#define GAP_US 50000
#define CLOCKS 60

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

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		perror(path);
	if (fd >= 0)
		close(fd);
}

/* A name that another thread gives. */

static atomic_int grinding; /* the ID of the thread, while it computes */

static void *grind(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "grist");
	keep_to(0, 1);
	schedule_as(0, SCHED_FIFO, 60);
	atomic_store(&grinding, (int)syscall(SYS_gettid));
	chew(2000);
	return NULL;
}

static void name(void)
{
	pthread_t thread;
	char path[64];

	atomic_store(&grinding, 0);
	pthread_create(&thread, NULL, grind, NULL);
	while (!atomic_load(&grinding))
		;
	chew(200);
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", atomic_load(&grinding));
	write_to(path, "millstone");
	pthread_join(thread, NULL);
}

/* A name that a program has. */

static void exec(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_NAME, "sack");
		keep_to(0, 1);
		schedule_as(0, SCHED_FIFO, 60);
		execl("/stone", "/stone", "chew", NULL);
		perror("/stone");
		_exit(1);
	}
	waitpid(child, NULL, 0);
}

/* Many software clocks in one interrupt. */

static void sample(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 10000000,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
	};
	static int clock[CLOCKS];

	for (int i = 0; i < CLOCKS; i++) {
		clock[i] = (int)syscall(SYS_perf_event_open, &attr, -1, 1,
					i ? clock[0] : -1, 0);
		if (clock[i] < 0) {
			perror("perf_event_open");
			return;
		}
		attr.disabled = 0;
	}
	ioctl(clock[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
	usleep(25000);
	for (int i = 0; i < CLOCKS; i++)
		close(clock[i]);
}

/* More memory than its group may have. */

static void eat(void)
{
	pid_t child = fork();

	if (!child) {
		size_t size = 64UL << 20;
		char *memory;

		prctl(PR_SET_NAME, "eater");
		keep_to(0, 1);
		write_to("/sys/fs/cgroup/tight/cgroup.procs", "0");
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (size_t at = 0; memory != MAP_FAILED && at < size; at += 4096)
			memory[at] = 1;
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static const struct kind {
	const char *name;
	void (*act)(void);
} kinds[] = {
	{ "name", name },
	{ "exec", exec },
	{ "sample", sample },
	{ "eat", eat },
};

int main(int argc, char **argv)
{
	int64_t until = now_ns() + 300000000;
	unsigned int kind = 0;

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "chew") == 0) {
		chew(2000);
		return 0;
	}
	keep_to(0, 0);
	while (strcmp(kinds[kind].name, argv[1]))
		if (++kind == sizeof(kinds) / sizeof(kinds[0]))
			return 2;
	if (now_ns() < until)
		usleep((until - now_ns()) / 1000);
	for (int i = 0; i < TIMES; i++) {
		kinds[kind].act();
		usleep(GAP_US);
	}
	return 0;
}
