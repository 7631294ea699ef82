/* SPDX-License-Identifier: MIT */
#include "thread/wakecost.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread/clock.h"
#include "thread/policy.h"

#define SLEEP_NS     INT64_C(1000000)
#define COPY_BYTES   (16 << 10)
#define BEGIN_SLEEPS 64

/* A thread that uses a CPU until it is stopped. */
struct user {
	pthread_t thread;
	atomic_int tid; /* 0 before it begins */
	atomic_bool stop;
	char copied[COPY_BYTES];
};

void wakecost_begin(void)
{
	policy_set(&(struct policy){ .kind = POLICY_FIFO, .priority = 1 });
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); /* where it stays ordinary */
}

void wakecost_end(void)
{
	prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0);
	policy_set(&(struct policy){ .kind = POLICY_OTHER });
}

static int by_size(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Returns how late it woke. */
static int64_t sleep_once(void)
{
	const int64_t due_ns = clock_now_ns() + SLEEP_NS;
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
