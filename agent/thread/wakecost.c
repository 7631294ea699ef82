/* SPDX-License-Identifier: MIT */
#include "thread/wakecost.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "thread/clock.h"
#include "thread/policy.h"

#define SLEEP_NS     INT64_C(1000000)
#define MORE_NS      INT64_C(137000)
#define COPY_BYTES   (16 << 10)
#define BEGIN_SLEEPS 64
#define STARVED_S    2 /* four times all that is measured from begin to end */

/* A thread that uses a CPU until it is stopped. */
struct user {
	pthread_t thread;
	atomic_int tid; /* 0 before it begins */
	atomic_bool stop;
	char copied[COPY_BYTES];
};

/* The thread that measures, away from its own CPUs. */
static struct away {
	pthread_t guard;
	bool guarded;
	pid_t tid;
	sem_t home;
	cpu_set_t before, there;
} away;

/* Off the program's CPUs first, where others are left: it would stay on them. */
static void go_home(void)
{
	cpu_set_t others;

	CPU_AND(&others, &away.before, &away.there);
	CPU_XOR(&others, &away.before, &others);
	if (CPU_COUNT(&others))
		sched_setaffinity(away.tid, sizeof(others), &others);
	sched_setaffinity(away.tid, sizeof(away.before), &away.before);
}

/* Brings it home where the program leaves it no time, which it cannot notice itself. */
static void *guard(void *unused)
{
	struct timespec until;
	sigset_t all;

	(void)unused;
	sigfillset(&all); /* signals are the supervisor's */
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	clock_gettime(CLOCK_REALTIME, &until); /* sem_timedwait() knows no other */
	until.tv_sec += STARVED_S;
	while (sem_timedwait(&away.home, &until) && errno == EINTR)
		;
	go_home();
	return NULL;
}

/* Of its first real-time thread, else of its first; false if it has none. */
static bool cpus_of(int pid, cpu_set_t *cpus)
{
	bool found = false, real_time = false;
	char path[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !real_time && (entry = readdir(dir))) {
		const pid_t tid = isdigit((unsigned char)entry->d_name[0])
					  ? atoi(entry->d_name)
					  : 0;
		const long policy = tid ? syscall(SYS_sched_getscheduler, tid) : -1;

		real_time = policy == POLICY_FIFO || policy == POLICY_RR ||
			    policy == POLICY_DEADLINE;
		if (policy >= 0 && (real_time || !found))
			found = sched_getaffinity(tid, sizeof(*cpus), cpus) == 0 ||
				found;
	}
	if (dir)
		closedir(dir);
	return found;
}

static void go_to(const cpu_set_t *cpus)
{
	away.there = *cpus;
	if (sched_getaffinity(0, sizeof(away.before), &away.before) ||
	    sem_init(&away.home, 0, 0))
		return;
	away.tid = (pid_t)syscall(SYS_gettid);
	away.guarded = pthread_create(&away.guard, NULL, guard, NULL) == 0;
	if (away.guarded)
		sched_setaffinity(0, sizeof(*cpus), cpus);
	else
		sem_destroy(&away.home);
}

void wakecost_begin(int pid)
{
	cpu_set_t cpus;

	if (cpus_of(pid, &cpus))
		go_to(&cpus);
	policy_set(&(struct policy){ .kind = POLICY_FIFO, .priority = 1 });
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); /* where it stays ordinary */
}

void wakecost_end(void)
{
	if (away.guarded) {
		sem_post(&away.home);
		pthread_join(away.guard, NULL);
		sem_destroy(&away.home);
		away.guarded = false;
	}
	prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0);
	policy_set(&(struct policy){ .kind = POLICY_OTHER });
}

static int by_size(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Returns how late it woke. No two sleeps in a row are equal: it would meet a program's
 * cycle each time. */
static int64_t sleep_once(void)
{
	static unsigned int sleeps;
	const int64_t more_ns = (sleeps++ * MORE_NS) % SLEEP_NS;
	const int64_t due_ns = clock_now_ns() + SLEEP_NS + more_ns;
	const struct timespec due = ns_timespec(due_ns);

	clock_sleep_until(&due);
	return clock_now_ns() - due_ns;
}

/* 0 if they are too few. */
static int64_t median_ns(int64_t *late_ns, unsigned int count)
{
	if (count < WAKECOST_SLEEPS / 2)
		return 0;
	qsort(late_ns, count, sizeof(late_ns[0]), by_size);
	return late_ns[count / 2];
}

static void *use_cpu(void *argument)
{
	struct user *user = argument;
	const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	sigset_t all;

	sigfillset(&all); /* signals are the supervisor's */
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	policy_set(&(struct policy){ .kind = POLICY_OTHER });
	atomic_store(&user->tid, (int)syscall(SYS_gettid));
	while (!atomic_load_explicit(&user->stop, memory_order_relaxed))
		if (read(zeros, user->copied, sizeof(user->copied)) <= 0)
			break;
	if (zeros >= 0)
		close(zeros);
	return NULL;
}

/* Has it use the CPU of the calling thread alone. Returns that, or -1. */
static int bring(struct user *user)
{
	const int cpu = sched_getcpu(), tid = atomic_load(&user->tid);
	cpu_set_t only;

	if (cpu < 0 || cpu >= CPU_SETSIZE || !tid)
		return -1;
	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	return sched_setaffinity(tid, sizeof(only), &only) == 0 ? cpu : -1;
}

/* A program that needs the CPU of this thread sends it to another: the user follows, and
 * ends on any that has time for it. */
static int64_t beside(struct user *user, const cpu_set_t *allowed)
{
	int64_t late_ns[WAKECOST_SLEEPS];
	unsigned int count = 0;
	int cpu;

	for (int i = 0; i < BEGIN_SLEEPS && !atomic_load(&user->tid); i++)
		sleep_once();
	cpu = bring(user);
	for (unsigned int i = 0; i < WAKECOST_SLEEPS && cpu >= 0; i++) {
		late_ns[count] = sleep_once();
		if (sched_getcpu() == cpu)
			count++;
		else
			cpu = bring(user);
	}
	if (atomic_load(&user->tid))
		sched_setaffinity(atomic_load(&user->tid), sizeof(*allowed), allowed);
	return median_ns(late_ns, count);
}

static int64_t beside_ns(void)
{
	struct user *user = calloc(1, sizeof(*user));
	int64_t median = 0;
	cpu_set_t allowed;

	if (user && sched_getaffinity(0, sizeof(allowed), &allowed) == 0 &&
	    pthread_create(&user->thread, NULL, use_cpu, user) == 0) {
		median = beside(user, &allowed);
		atomic_store(&user->stop, true);
		pthread_join(user->thread, NULL);
	}
	free(user);
	return median;
}

static int64_t alone_ns(void)
{
	int64_t late_ns[WAKECOST_SLEEPS];

	for (unsigned int i = 0; i < WAKECOST_SLEEPS; i++)
		late_ns[i] = sleep_once();
	return median_ns(late_ns, WAKECOST_SLEEPS);
}

struct wakecost wakecost_measure(void)
{
	const int64_t alone = alone_ns();

	return (struct wakecost){ .alone_ns = alone, .beside_ns = beside_ns() };
}
