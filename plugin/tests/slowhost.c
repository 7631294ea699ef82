/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slowhost - loaded before QEMU, makes its threads late as a busy host does, at other
 * moments in every run: after they have waited, before they take a lock, and before the
 * CPUs' thread leaves an instruction early, as it does when a CPU begins to wait. And it
 * lets the main loop look when nothing has happened, and a thread that belongs to no CPU
 * take QEMU's big lock, as the one does that frees what QEMU has replaced (util/rcu.c).
 * Says so in the file SLOWHOST names.
 */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define LATE_AFTER_POLL_NS       5000
#define LATE_AFTER_WAIT_NS       40000
#define LATE_BEFORE_LOCK_NS      1000
#define LATE_BEFORE_MAIN_LOCK_NS 100000
#define LATE_BEFORE_JUMP_NS      80000
#define LATE_AT_END_US           50000
#define LOOKS_AFTER_NS           2000
#define ONE_IN                   256
#define TIMES_AS_LATE            20

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Up to so many ns, and now and then far more. */
static void be_late(uint64_t most_ns)
{
	static __thread uint64_t random;
	uint64_t began_ns = clock_ns(), late_ns;

	if (!random)
		random = began_ns << 7 | 1;
	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	late_ns = random % most_ns;
	if ((random >> 40) % ONE_IN == 0)
		late_ns *= TIMES_AS_LATE;
	while (clock_ns() - began_ns < late_ns)
		;
}

__attribute__((constructor)) static void say_so(void)
{
	const char *path = getenv("SLOWHOST");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (file)
		fclose(file);
}

#define THEIR(function) ((__typeof__(&(function)))dlsym(RTLD_NEXT, #function))

static void *lock_again_and_again(void *nothing)
{
	void (*lock)(const char *file, int line) = dlsym(RTLD_DEFAULT, "bql_lock_impl");
	void (*unlock)(void) = dlsym(RTLD_DEFAULT, "bql_unlock");

	(void)nothing;
	prctl(PR_SET_TIMERSLACK, 1);
	while (lock && unlock) {
		usleep(1);
		lock("slowhost.c", __LINE__);
		unlock();
	}
	return NULL;
}

/* The main loop polls first when QEMU and its plugin have begun. */
static void begin_to_lock(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, lock_again_and_again, NULL);
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout,
	  const sigset_t *signals)
{
	static pthread_once_t begun = PTHREAD_ONCE_INIT;
	struct timespec soon = { .tv_nsec = LOOKS_AFTER_NS };
	int ready;

	pthread_once(&begun, begin_to_lock);

	if (!timeout || timeout->tv_sec || timeout->tv_nsec > LOOKS_AFTER_NS)
		timeout = &soon;
	ready = THEIR(ppoll)(files, count, timeout, signals);
	be_late(LATE_AFTER_POLL_NS);
	return ready;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	int error = THEIR(pthread_cond_wait)(condition, mutex);

	be_late(LATE_AFTER_WAIT_NS);
	return error;
}

/* The main loop's most: it takes few locks, and one of them is QEMU's big one. */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	static __thread pid_t thread;

	if (!thread)
		thread = gettid();
	be_late(thread == getpid() ? LATE_BEFORE_MAIN_LOCK_NS : LATE_BEFORE_LOCK_NS);
	return THEIR(pthread_mutex_lock)(mutex);
}

/* What the guest executes after it has switched its machine off, it executes on a slow
 * host after QEMU's main loop has stopped it. */
int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static int (*requested)(void);
	int error = THEIR(pthread_mutex_unlock)(mutex);

	if (!requested)
		requested = dlsym(RTLD_DEFAULT, "qemu_shutdown_requested_get");
	if (requested && gettid() != getpid() && requested())
		usleep(LATE_AT_END_US);
	return error;
}

/* Fortified as QEMU is, it does not call siglongjmp() by that name. */
void __longjmp_chk(struct __jmp_buf_tag *to, int value)
{
	be_late(LATE_BEFORE_JUMP_NS);
	THEIR(siglongjmp)(to, value);
	__builtin_unreachable();
}
