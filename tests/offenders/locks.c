/* A real-time thread `cycle` and an ordinary one `holder`, which share what the command
 * line names: a lock of some kind, or something that is none. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char *kind;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int event, posted;

static int is(const char *name)
{
	return strcmp(kind, name) == 0;
}

static void spin(long ns)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec <
		 ns);
}

__attribute__((noinline)) static void step(void)
{
	uint64_t number;

	if (is("mutex") || is("robust") || is("pi") || is("timed")) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 5;
		if (is("timed"))
			pthread_mutex_timedlock(&mutex, &until);
		else
			pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	} else if (is("rwlock")) {
		pthread_rwlock_wrlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
	} else if (is("reader")) {
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
	} else if (is("semaphore")) {
		sem_wait(&semaphore);
		sem_post(&semaphore);
	} else if (is("queue")) {
		sem_wait(&semaphore);
	} else if (is("condition")) {
		pthread_mutex_lock(&mutex);
		while (!posted)
			pthread_cond_wait(&condition, &mutex);
		posted = 0;
		pthread_mutex_unlock(&mutex);
	} else if (is("barrier")) {
		pthread_barrier_wait(&barrier);
	} else if (is("eventfd")) {
		if (read(event, &number, sizeof(number)) < 0)
			exit(4);
	}
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void hold(void)
{
	const uint64_t one = 1;

	if (is("mutex") || is("robust") || is("pi") || is("timed")) {
		pthread_mutex_lock(&mutex);
		spin(3000000);
		pthread_mutex_unlock(&mutex);
	} else if (is("rwlock") || is("reader")) {
		pthread_rwlock_wrlock(&rwlock);
		spin(3000000);
		pthread_rwlock_unlock(&rwlock);
	} else if (is("semaphore")) {
		sem_wait(&semaphore);
		spin(1500000);
		sem_post(&semaphore);
	} else if (is("queue")) {
		sem_post(&semaphore);
	} else if (is("condition")) {
		pthread_mutex_lock(&mutex);
		posted = 1;
		pthread_mutex_unlock(&mutex);
		pthread_cond_signal(&condition);
	} else if (is("barrier")) {
		pthread_barrier_wait(&barrier);
	} else if (is("eventfd")) {
		if (write(event, &one, sizeof(one)) < 0)
			exit(4);
	}
	__asm__ volatile("" ::: "memory");
}

static void *holder(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "holder");
	for (;;) {
		hold();
		usleep(4000);
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
		step();
		next.tv_nsec += 1000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		/* where the other's pace is its own it has no timer */
		if (!is("eventfd"))
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 61 };
	pthread_mutexattr_t of_mutex;
	pthread_attr_t attr;
	pthread_t thread;

	kind = argc > 1 ? argv[1] : "mutex";
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return 3;
	pthread_mutexattr_init(&of_mutex);
	if (is("robust"))
		pthread_mutexattr_setrobust(&of_mutex, PTHREAD_MUTEX_ROBUST);
	if (is("pi"))
		pthread_mutexattr_setprotocol(&of_mutex, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&mutex, &of_mutex);
	pthread_barrier_init(&barrier, NULL, 2);
	sem_init(&semaphore, 0, is("semaphore"));
	event = eventfd(0, 0);
	pthread_create(&thread, NULL, holder, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	if (pthread_create(&thread, &attr, cycle, NULL))
		return 3;
	pthread_join(thread, NULL);
	return 0;
}
