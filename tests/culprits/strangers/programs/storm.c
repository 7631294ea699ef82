// SPDX-License-Identifier: MIT
/* storm KIND: 0.3 s after its start, a burst of one kind of system call, three times. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB     (1UL << 20)
#define WAITERS 14

static void go_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void be_fifo(int priority)
{
	struct sched_param p = { .sched_priority = priority };

	if (sched_setscheduler(0, SCHED_FIFO, &p))
		perror("sched_setscheduler");
}

static long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static void yield(void)
{
	long until;

	prctl(PR_SET_NAME, "yielder");
	go_to(1);
	be_fifo(99);
	until = now_us() + 1000;
	while (now_us() < until)
		sched_yield();
	struct sched_param p = { 0 };
	sched_setscheduler(0, SCHED_OTHER, &p);
}

static void forks(void)
{
	prctl(PR_SET_NAME, "forker");
	go_to(1);
	be_fifo(60);
	for (int i = 0; i < 10; i++)
		if (fork() == 0)
			_exit(0);
	while (wait(0) > 0)
		;
}

static atomic_int word;

static void *waiter(void *unused)
{
	long until;

	prctl(PR_SET_NAME, "fwaiter");
	go_to(1);
	be_fifo(60);
	for (int i = 0; i < 3; i++) {
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, i, 0, 0, 0);
		until = now_us() + 90;
		while (now_us() < until)
			;
	}
	return unused;
}

static void futexes(void)
{
	static pthread_t threads[WAITERS];

	if (!threads[0]) {
		for (int i = 0; i < WAITERS; i++)
			pthread_create(&threads[i], 0, waiter, 0);
		usleep(50000);
	}
	word++;
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1000, 0, 0, 0);
}

static void *runner(void *cpu)
{
	go_to((int)(long)cpu);
	prctl(PR_SET_NAME, "runner");
	for (volatile unsigned long i = 0;; i++)
		;
	return 0;
}

static void run_beside(int cpu)
{
	static pthread_t thread;

	if (!thread)
		pthread_create(&thread, 0, runner, (void *)(long)cpu);
}

static void barriers(void)
{
	prctl(PR_SET_NAME, "fencer");
	go_to(0);
	run_beside(1);
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	for (int i = 0; i < 200; i++)
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static void unmap(void)
{
	char *area;

	prctl(PR_SET_NAME, "unmapper");
	go_to(1);
	run_beside(0);
	area = mmap(0, 128 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	madvise(area, 128 * MIB, MADV_NOHUGEPAGE);
	for (unsigned long at = 0; at < 128 * MIB; at += 4096)
		area[at] = 1;
	munmap(area, 128 * MIB);
}

static char *area; /* of protect() and compact() */

static void fill(unsigned long bytes)
{
	area = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	madvise(area, bytes, MADV_NOHUGEPAGE);
	for (unsigned long at = 0; at < bytes; at += 4096)
		area[at] = 1;
}

static void fill_to_protect(void)
{
	fill(32 * MIB);
}

static void protect(void)
{
	prctl(PR_SET_NAME, "protector");
	go_to(1);
	run_beside(0);
	for (int i = 0; i < 8; i++)
		mprotect(area, 32 * MIB, i & 1 ? PROT_READ | PROT_WRITE : PROT_READ);
}

static void huge(void)
{
	char *area;

	prctl(PR_SET_NAME, "toucher");
	go_to(1);
	area = mmap(0, 6 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	area = (char *)(((unsigned long)area + 2 * MIB - 1) & ~(2 * MIB - 1));
	area[5] = 1;
	usleep(2000);
	area[2 * MIB + 5] = 1;
}

static void step(void)
{
	struct timespec t;

	go_to(0);
	for (int i = 0; i < 10; i++) {
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_sec += i & 1 ? -3600 : 3600;
		clock_settime(CLOCK_REALTIME, &t);
	}
}

static void audited(void)
{
	prctl(PR_SET_NAME, "audited");
	go_to(1);
	getppid();
}

static atomic_int quiet;

static void *holder(void *unused)
{
	int fd = open("/dev/quiesce", O_WRONLY);

	prctl(PR_SET_NAME, "holder");
	go_to(0);
	for (;;) {
		while (quiet != 1)
			;
		quiet = 2;
		write(fd, "x", 1);
	}
	return unused;
}

static void shoot(void)
{
	static pthread_t thread;
	long until;
	char *area;

	prctl(PR_SET_NAME, "shooter");
	go_to(1);
	if (!thread) {
		pthread_create(&thread, 0, holder, 0);
		usleep(20000);
	}
	area = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	memset(area, 1, 65536);
	quiet = 1;
	while (quiet != 2)
		;
	until = now_us() + 40;
	while (now_us() < until)
		;
	munmap(area, 65536);
}

static void make_holes(void)
{
	int locked = open("/proc/sys/vm/compact_unevictable_allowed", O_WRONLY);

	/* As with PREEMPT_RT: the locked pages of the measured thread stay. */
	write(locked, "0", 1);
	close(locked);
	fill(160 * MIB);
	for (unsigned long at = 0; at < 160 * MIB; at += 8192)
		madvise(area + at, 4096, MADV_DONTNEED);
}

static void compact(void)
{
	int fd = open("/proc/sys/vm/compact_memory", O_WRONLY);

	prctl(PR_SET_NAME, "compacter");
	go_to(1);
	write(fd, "1", 1);
	close(fd);
}

static const struct {
	const char *name;
	void (*blow)(void);
	void (*ready)(void); /* on the first CPU, which is not measured */
} kinds[] = {
	{ "yield", yield },
	{ "fork", forks },
	{ "futex", futexes },
	{ "barrier", barriers },
	{ "unmap", unmap },
	{ "protect", protect, fill_to_protect },
	{ "huge", huge },
	{ "step", step },
	{ "audited", audited },
	{ "shoot", shoot },
	{ "compact", compact, make_holes },
};

int main(int argc, char **argv)
{
	long until = now_us() + 300000;
	unsigned int kind = 0;

	if (argc < 2)
		return 2;
	while (strcmp(kinds[kind].name, argv[1]))
		if (++kind == sizeof(kinds) / sizeof(kinds[0]))
			return 2;
	if (kinds[kind].ready)
		kinds[kind].ready();
	if (now_us() < until)
		usleep(until - now_us());
	for (int i = 0; i < 3; i++) {
		kinds[kind].blow();
		usleep(60000);
	}
	/* Its memory stays until all is measured: to free it takes longer than the blows. */
	if (kinds[kind].ready)
		pause();
	_exit(0);
}
