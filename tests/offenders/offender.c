/* A thread `cycle` with all that a real-time thread needs, and one offence that is named
 * on the command line; `clean` and `urgent` commit none. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
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
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t work;

static int is(const char *name)
{
	return strcmp(offence, name) == 0;
}

__attribute__((noinline)) static void touch(char *where)
{
	*(volatile char *)where = 1;
}

__attribute__((noinline)) static char peek(const char *where)
{
	return *(const volatile char *)where;
}

static void on_signal(int number)
{
	(void)number;
}

static void spin_until(const struct timespec *from, long ns)
{
	struct timespec now;

	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from->tv_sec) * 1000000000 + now.tv_nsec -
			 from->tv_nsec <
		 ns);
}

static void spin(long ns)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	spin_until(&now, ns);
}

/* Holds the lock for half of the time, on another CPU. */
static void *hold(void *unused)
{
	(void)unused;
	for (;;) {
		pthread_mutex_lock(&lock);
		usleep(5000);
		pthread_mutex_unlock(&lock);
		usleep(5000);
	}
	return NULL;
}

/* Holds the lock for longer than the other, which is more urgent, lets it alone. */
static void *own(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "owner");
	for (;;) {
		pthread_mutex_lock(&lock);
		spin(2000000);
		pthread_mutex_unlock(&lock);
		usleep(1000);
	}
	return NULL;
}

static void *between(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "between");
	for (;;) {
		usleep(1300);
		spin(500000);
	}
	return NULL;
}

static void *post(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "poster");
	for (;;) {
		usleep(1000);
		sem_post(&work);
	}
	return NULL;
}

/* Waits for the CPU of the other, which is urgent and lets it alone too late. */
static void *starve(void *unused)
{
	cpu_set_t cpus;

	(void)unused;
	pthread_setname_np(pthread_self(), "starved");
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	for (;;)
		spin(1000000);
	return NULL;
}

/* What the CPU refuses to load, and the kernel does instead: 32-bit ARM alone. */
__attribute__((noinline)) static void load_unaligned(const char *at)
{
#ifdef __arm__
	__asm__ volatile("ldm %0, {r4, r5}" : : "r"(at) : "r4", "r5", "memory");
#else
	(void)at;
#endif
}

/* As of a child that ends while the thread blocks it: nobody takes it. */
static void receive_what_is_ignored(void)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &child, NULL);
	raise(SIGCHLD);
	pthread_sigmask(SIG_UNBLOCK, &child, NULL);
}

__attribute__((noinline)) static void offend_in_system(void)
{
	if (is("write")) {
		if (write(fd, "x", 1) != 1)
			exit(4);
	} else if (is("mmap")) {
		munmap(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		       PAGE);
	} else if (is("relative-sleep")) {
		usleep(10);
	} else if (is("tai-sleep")) {
		struct timespec now;

		clock_gettime(CLOCK_TAI, &now);
		clock_nanosleep(CLOCK_TAI, TIMER_ABSTIME, &now, NULL);
	} else if (is("signal")) {
		raise(SIGUSR1);
		receive_what_is_ignored();
	} else if (is("woken")) {
		sem_wait(&work);
	} else if (is("unaligned")) {
		load_unaligned(page + 1);
	} else if ((is("mutex") || is("inversion")) && cycle_number % 20 == 0) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	} else if (is("preempted")) {
		spin(300000);
	} else if (is("throttled") && cycle_number % 2000 == 0) {
		spin(1500000000);
	}
	__asm__ volatile("" ::: "memory");
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

/* In the middle of the spin of the other, which begins at each whole period. */
static void *above(void *unused)
{
	struct timespec next;

	(void)unused;
	pthread_setname_np(pthread_self(), "above");
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		next.tv_nsec += PERIOD_NS / 10;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return NULL;
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
		offend_in_system();
	}
	return NULL;
}

static void start(int cpu, int priority, void *(*function)(void *))
{
	struct sched_param param = { .sched_priority = is("policy") ? 0 : priority };
	pthread_attr_t attr;
	pthread_t thread;
	cpu_set_t cpus, own;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (is("not-pinned"))
		CPU_SET(1, &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, is("policy") ? SCHED_OTHER : SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	/* a thread inherits it; musl has no attribute for it */
	sched_getaffinity(0, sizeof(own), &own);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	if (pthread_create(&thread, &attr, function, NULL)) {
		perror("a real-time thread");
		exit(3);
	}
	sched_setaffinity(0, sizeof(own), &own);
}

int main(int argc, char **argv)
{
	pthread_t holder;

	offence = argc > 1 ? argv[1] : "clean";
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (is("rttime"))
		setrlimit(RLIMIT_RTTIME, &(struct rlimit){ 500000, 1000000 });
	if (!is("not-locked") &&
	    mlockall(MCL_CURRENT | MCL_FUTURE | (is("on-fault") ? MCL_ONFAULT : 0)))
		return 3;
	if (is("minor-fault"))
		munlock(page, PAGE);
	if (is("major-fault")) {
		fd = open(argv[2], O_RDONLY);
		file = mmap(NULL, PAGE * FILE_PAGES, PROT_READ, MAP_SHARED, fd, 0);
		munlock(file, PAGE * FILE_PAGES);
		madvise(file, PAGE * FILE_PAGES, MADV_RANDOM);
	}
	if (is("write"))
		fd = open("/dev/null", O_WRONLY);
	signal(SIGUSR1, on_signal);
	start(0, is("priority-99") ? 99 : is("urgent") ? 97 : 61, cycle);
	if (is("peers"))
		start(0, 61, cycle);
	if (is("preempted"))
		start(0, 70, above);
	if (is("inversion")) {
		start(1, 10, own);
		start(1, 20, between);
	}
	if (is("mutex"))
		pthread_create(&holder, NULL, hold, NULL);
	if (is("woken"))
		pthread_create(&holder, NULL, post, NULL);
	if (is("throttled"))
		pthread_create(&holder, NULL, starve, NULL);
	for (;;)
		pause();
}
