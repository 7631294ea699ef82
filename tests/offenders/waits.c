/*
 * waits: each way to wait once, with what the program itself knows of it.
 *
 * Prints a line for each step: its name, the thread that takes it, and numbers. A step
 * begins and ends with getppid(), which nothing else here calls: so its records are known.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS    1000000LL
#define PAGES 64

static pthread_mutex_t lock;
static int ends[2];
static volatile int wanted_by, given_by, populates;

static long long now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct timespec at(long long ns)
{
	return (struct timespec){ ns / 1000000000, ns % 1000000000 };
}

static int self(void)
{
	return (int)syscall(SYS_gettid);
}

static void mark(void)
{
	syscall(SYS_getppid);
}

static void pause_ns(long long ns)
{
	struct timespec t = at(ns);

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void spin_ns(long long ns)
{
	long long until = now(CLOCK_MONOTONIC) + ns;

	while (now(CLOCK_MONOTONIC) < until)
		;
}

static pthread_t begin(void *(*run)(void *), int priority)
{
	struct sched_param s = { .sched_priority = priority };
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&a, priority ? SCHED_FIFO : SCHED_OTHER);
	pthread_attr_setschedparam(&a, &s);
	if (pthread_create(&t, &a, run, NULL))
		exit(9);
	return t;
}

static void sleeps(const char *name, clockid_t clock)
{
	long long due = (now(clock) / MS + 2) * MS;

	mark();
	for (int i = 0; i < 5; i++, due += MS) {
		struct timespec t = at(due);

		clock_nanosleep(clock, TIMER_ABSTIME, &t, NULL);
		printf("%s %d %lld %lld\n", name, self(), due, now(clock));
	}
	mark();
}

static void timers(void)
{
	struct itimerspec every = { .it_interval = { 0, MS }, .it_value = { 0, MS } };
	struct itimerval once = { .it_value = { 0, 2000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGUSR1 };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	unsigned long long count;
	siginfo_t info;
	sigset_t set;
	timer_t timer;

	mark();
	timerfd_settime(fd, 0, &every, NULL);
	for (int i = 0; i < 5; i++)
		if (read(fd, &count, sizeof(count)) != sizeof(count))
			exit(8);
	mark();
	printf("timerfd %d 5\n", self());
	close(fd);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	mark();
	timer_settime(timer, 0, &every, NULL);
	for (int i = 0; i < 5; i++)
		sigwaitinfo(&set, &info);
	mark();
	timer_delete(timer);
	printf("timer %d 5\n", self());
	mark();
	setitimer(ITIMER_REAL, &once, NULL);
	do
		sigwaitinfo(&set, &info);
	while (info.si_signo != SIGALRM);
	mark();
	printf("itimer %d 1\n", self());
}

static void faults(void)
{
	long size = sysconf(_SC_PAGESIZE);
	char *room = mmap(NULL, (size_t)(PAGES * size), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rusage before, after;

	madvise(room, (size_t)(PAGES * size), MADV_NOHUGEPAGE);
	getrusage(RUSAGE_THREAD, &before);
	getrusage(RUSAGE_THREAD, &before);
	mark();
	for (int i = 0; i < PAGES; i++)
		room[i * size] = 1;
	mark();
	getrusage(RUSAGE_THREAD, &after);
	printf("faults %d %ld\n", self(), after.ru_minflt - before.ru_minflt);
}

static void *hold(void *nothing)
{
	prctl(PR_SET_NAME, "holder");
	pthread_mutex_lock(&lock);
	given_by = self();
	spin_ns(3 * MS);
	pthread_mutex_unlock(&lock);
	return nothing;
}

static void *want(void *nothing)
{
	prctl(PR_SET_NAME, "wanter");
	pause_ns(1 * MS);
	wanted_by = self();
	mark();
	pthread_mutex_lock(&lock);
	mark();
	pthread_mutex_unlock(&lock);
	return nothing;
}

static void *send(void *nothing)
{
	prctl(PR_SET_NAME, "sender");
	given_by = self();
	pause_ns(1 * MS);
	if (write(ends[1], "x", 1) != 1)
		exit(7);
	return nothing;
}

static void *populate(void *nothing)
{
	size_t size = 16 << 20;

	prctl(PR_SET_NAME, "populate");
	populates = self();
	madvise(mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0),
		size, MADV_NORMAL);
	return nothing;
}

static void *map(void *nothing)
{
	prctl(PR_SET_NAME, "mapper");
	pause_ns(1 * MS);
	wanted_by = self();
	mark();
	mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mark();
	return nothing;
}

static void locks(void)
{
	pthread_mutexattr_t a;
	pthread_t one, two;
	char byte;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &a);
	two = begin(want, 80);
	one = begin(hold, 0);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	printf("lending %d %d\n", wanted_by, given_by);

	if (pipe(ends))
		exit(6);
	one = begin(send, 0);
	mark();
	if (read(ends[0], &byte, 1) != 1)
		exit(5);
	mark();
	pthread_join(one, NULL);
	printf("pipe %d %d\n", self(), given_by);

	two = begin(map, 80);
	one = begin(populate, 0);
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	printf("mapping %d %d\n", wanted_by, populates);
}

__attribute__((noinline)) void used(long number)
{
	__asm__ volatile("" : : "r"(number));
}

__attribute__((noinline)) void uses(long times)
{
	mark();
	for (long i = 0; i < times; i++)
		used(i);
	mark();
}

static void children(char **argv)
{
	pid_t child = fork();
	char *again[] = { argv[0], (char *)"child", NULL };

	if (child == 0) {
		execv(argv[0], again);
		_exit(4);
	}
	waitpid(child, NULL, 0);
	printf("child %d %d\n", self(), (int)child);
}

int main(int argc, char **argv)
{
	cpu_set_t set;

	if (argc > 1 && strcmp(argv[1], "child") == 0) {
		prctl(PR_SET_NAME, "renamed");
		pause_ns(MS);
		return 3;
	}
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	sched_setaffinity(0, sizeof(set), &set);
	sleeps("monotonic", CLOCK_MONOTONIC);
	sleeps("realtime", CLOCK_REALTIME);
	sleeps("boottime", CLOCK_BOOTTIME);
	timers();
	faults();
	uses(7);
	printf("used %d 7\n", self());
	locks();
	children(argv);
	return 0;
}
