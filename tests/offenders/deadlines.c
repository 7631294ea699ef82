/* SPDX-License-Identifier: MIT */
/* A thread `cycle` that waits until a time, by the call and the clock of argv[1]. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 2000000L

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static mqd_t queue;
static int timer;
static const char *kind;

static struct timespec from_now(clockid_t clock, long ns)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += ns % 1000000000L;
	t.tv_sec += ns / 1000000000L + t.tv_nsec / 1000000000L;
	t.tv_nsec %= 1000000000L;
	return t;
}

static void wait_for_condition(clockid_t clock, long ns)
{
	const struct timespec until = from_now(clock, ns);

	pthread_mutex_lock(&mutex);
	pthread_cond_clockwait(&condition, &mutex, clock, &until);
	pthread_mutex_unlock(&mutex);
}

static void wait_once(void)
{
	const struct timespec next = from_now(CLOCK_REALTIME, PERIOD_NS);
	uint64_t times;
	char message[8];

	if (strcmp(kind, "condition") == 0)
		wait_for_condition(CLOCK_REALTIME, PERIOD_NS);
	else if (strcmp(kind, "monotonic") == 0)
		wait_for_condition(CLOCK_MONOTONIC, PERIOD_NS);
	else if (strcmp(kind, "guard") == 0)
		wait_for_condition(CLOCK_REALTIME, 5000000000L);
	else if (strcmp(kind, "semaphore") == 0)
		sem_timedwait(&semaphore, &next);
	else if (strcmp(kind, "queue") == 0)
		mq_timedreceive(queue, message, sizeof(message), NULL, &next);
	else
		(void)!read(timer, &times, sizeof(times));
}

static void *cycle(void *unused)
{
	prctl(PR_SET_NAME, "cycle");
	for (;;)
		wait_once();
	return unused;
}

static void set_timer(void)
{
	const int flags = strcmp(kind, "timer") == 0 ? TFD_TIMER_ABSTIME : 0;
	struct itimerspec every = { .it_interval = { 0, PERIOD_NS },
				    .it_value = { 0, PERIOD_NS } };

	if (flags)
		every.it_value = from_now(CLOCK_REALTIME, PERIOD_NS);
	timer = timerfd_create(CLOCK_REALTIME, 0);
	timerfd_settime(timer, flags, &every, NULL);
}

int main(int argc, char **argv)
{
	struct mq_attr room = { .mq_maxmsg = 2, .mq_msgsize = 8 };
	pthread_t thread;

	kind = argc > 1 ? argv[1] : "";
	sem_init(&semaphore, 0, 0);
	queue = mq_open("/rtscope-deadlines", O_RDWR | O_CREAT, 0600, &room);
	mq_unlink("/rtscope-deadlines");
	set_timer();
	pthread_create(&thread, NULL, cycle, NULL);
	for (;;) {
		usleep(PERIOD_NS / 1000);
		if (strcmp(kind, "guard") == 0)
			pthread_cond_signal(&condition);
	}
}
