/* A thread `cycle` with all that a real-time thread needs, and one offence that is named
 * on the command line; `clean` commits none. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS   1000000
#define PAGE        4096
#define FILE_PAGES  64
#define STACK_BYTES (256 * 1024)

static const char *offence;
static char *page, *file;
static int fd;
static long cycle_number;

static int is(const char *name) { return strcmp(offence, name) == 0; }

__attribute__((noinline)) static void touch(char *where)
{
	*(volatile char *)where = 1;
}

__attribute__((noinline)) static char peek(const char *where)
{
	return *(const volatile char *)where;
}

__attribute__((noinline)) static void offend(void)
{
	if (is("minor-fault")) {
		madvise(page, PAGE, MADV_DONTNEED);
		touch(page);
	} else if (is("major-fault") && cycle_number % 20 == 0) {
		char *at = file + PAGE * (cycle_number / 20 % FILE_PAGES);

		madvise(file, PAGE * FILE_PAGES, MADV_DONTNEED);
		posix_fadvise(fd, 0, PAGE * FILE_PAGES, POSIX_FADV_DONTNEED);
		peek(at);
	} else if (is("malloc")) {
		char *p = malloc(100);

		touch(p);
		free(p);
	} else if (is("migration")) {
		cpu_set_t cpus;

		CPU_ZERO(&cpus);
		CPU_SET(cycle_number % 2, &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
	}
	__asm__ volatile("" ::: "memory");
}

static void *cycle(void *unused)
{
	struct timespec next;

	(void)unused;
	pthread_setname_np(pthread_self(), "cycle");
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		next.tv_nsec += PERIOD_NS;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		cycle_number++;
		offend();
	}
	return NULL;
}

static void start(int priority)
{
	struct sched_param param = { .sched_priority = is("policy") ? 0 : priority };
	pthread_attr_t attr;
	pthread_t thread;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (is("not-pinned"))
		CPU_SET(1, &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, is("policy") ? SCHED_OTHER : SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	if (pthread_create(&thread, &attr, cycle, NULL)) {
		perror("a real-time thread");
		exit(3);
	}
}

int main(int argc, char **argv)
{
	offence = argc > 1 ? argv[1] : "clean";
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (is("rttime"))
		setrlimit(RLIMIT_RTTIME, &(struct rlimit){ 500000, 1000000 });
	if (!is("not-locked") && mlockall(MCL_CURRENT | MCL_FUTURE))
		return 3;
	if (is("minor-fault"))
		munlock(page, PAGE);
	if (is("major-fault")) {
		fd = open(argv[2], O_RDONLY);
		file = mmap(NULL, PAGE * FILE_PAGES, PROT_READ, MAP_SHARED, fd, 0);
		munlock(file, PAGE * FILE_PAGES);
		madvise(file, PAGE * FILE_PAGES, MADV_RANDOM);
	}
	start(is("priority-99") ? 99 : 60);
	if (is("peers"))
		start(60);
	for (;;)
		pause();
}
