/* SPDX-License-Identifier: MIT */
/* Loops of 5 ms, each woken in another way: loops KIND. The work in a cycle varies. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PERIOD 5000000LL

static const char *kind;
static long long due;
static unsigned int seed = 7;
static sem_t posted;
static bool serves;
static int ends[2], pipes[2], waits, nothing;
static pthread_t looping;

static bool is(const char *name)
{
	return strcmp(kind, name) == 0;
}

static long long now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct timespec spec(long long ns)
{
	return (struct timespec){ ns / 1000000000, ns % 1000000000 };
}

static void work(void)
{
	const long long end = now(CLOCK_MONOTONIC) + rand_r(&seed) % 500000;

	while (now(CLOCK_MONOTONIC) < end)
		;
}

static int sleep_until(clockid_t clock, long long ns)
{
	const struct timespec t = spec(ns);

	return clock_nanosleep(clock, TIMER_ABSTIME, &t, NULL);
}

static void handle(int signo)
{
	(void)signo;
}

static void *feed(void *arg)
{
	long long at = now(CLOCK_MONOTONIC);

	for (;;) {
		if (serves)
			usleep((unsigned int)(rand() % 6000));
		else
			sleep_until(CLOCK_MONOTONIC, at += PERIOD);
		if (is("signal")) {
			usleep((unsigned int)(rand() % 4000));
			pthread_kill(looping, SIGUSR1);
		}
		if (is("semaphore"))
			sem_post(&posted);
		if (is("pipe") && write(pipes[1], "x", 1) < 0)
			return arg;
		if ((is("socket") || serves) && send(ends[0], "x", 1, 0) < 0)
			return arg;
	}
}

static int timer_of(long long every)
{
	const struct itimerspec t = { spec(every), spec(every) };
	const int fd = timerfd_create(CLOCK_MONOTONIC, 0);

	timerfd_settime(fd, 0, &t, NULL);
	return fd;
}

static void poll_timers(int timers)
{
	const int epoll = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	uint64_t expired;

	for (int i = 0; i < timers; i++) {
		event.data.fd = timer_of(PERIOD + 2000000LL * i);
		epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
	}
	while (epoll_wait(epoll, &event, 1, -1) == 1 &&
	       read(event.data.fd, &expired, sizeof(expired)) > 0)
		work();
}

/* As servers do: a timer, which is periodic, set again, or the timeout of the wait, beside
 * a socket on which messages come at any time. */
static void serve(void)
{
	const int epoll = epoll_create1(0), timer = timer_of(is("served") ? PERIOD : 0);
	struct epoll_event event = { .events = EPOLLIN, .data.fd = timer };
	const struct itimerspec once = { { 0, 0 }, spec(PERIOD) };
	uint64_t expired;
	char byte;

	epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event);
	event.data.fd = ends[1];
	epoll_ctl(epoll, EPOLL_CTL_ADD, ends[1], &event);
	if (is("served once"))
		timerfd_settime(timer, 0, &once, NULL);
	for (;;) {
		const long long left = due - now(CLOCK_MONOTONIC);
		const int ms = left > 0 ? (int)((left + 999999) / 1000000) : 0;
		const int found =
			epoll_wait(epoll, &event, 1, is("served timeout") ? ms : -1);

		if (found < 0)
			exit(1);
		if (found && event.data.fd == ends[1]) {
			if (recv(ends[1], &byte, 1, 0) < 0)
				exit(1);
			continue;
		}
		if (found && read(timer, &expired, sizeof(expired)) < 0)
			exit(1);
		due += PERIOD;
		work();
		if (is("served once"))
			timerfd_settime(timer, 0, &once, NULL);
	}
}

static void wait_for_signals(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGUSR2 };
	const struct itimerspec t = { spec(PERIOD), spec(PERIOD) };
	timer_t timer;
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	event._sigev_un._tid = (int)syscall(SYS_gettid);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &t, NULL);
	while (sigwait(&set, &got) == 0)
		work();
}

/* One wait of the kind. */
static void wait_once(void)
{
	const struct timespec period = spec(PERIOD), little = { 0, 200000 };
	long long left;
	char byte;

	due += PERIOD;
	if (is("absolute"))
		sleep_until(CLOCK_MONOTONIC, due);
	else if (is("signal"))
		while (sleep_until(CLOCK_MONOTONIC, due) == EINTR)
			;
	else if (is("realtime"))
		sleep_until(CLOCK_REALTIME, due);
	else if (is("relative"))
		nanosleep(&period, NULL);
	else if (is("rest") && (left = due - now(CLOCK_MONOTONIC)) > 0)
		ppoll(NULL, 0, &(struct timespec){ 0, left }, NULL);
	else if (is("timeout"))
		epoll_wait(nothing, &(struct epoll_event){ 0 }, 1,
			   (int)(PERIOD / 1000000));
	else if (is("semaphore"))
		sem_wait(&posted);
	else if (is("pipe") && read(pipes[0], &byte, 1) < 0)
		exit(1);
	else if (is("socket") && recv(ends[1], &byte, 1, 0) < 0)
		exit(1);
	else if (is("second")) {
		semtimedop(waits, &(struct sembuf){ 0, -1, 0 }, 1, &little);
		sleep_until(CLOCK_MONOTONIC, due);
	}
}

static void *loop(void *arg)
{
	due = now(is("realtime") ? CLOCK_REALTIME : CLOCK_MONOTONIC);
	if (is("timerfd") || is("timers"))
		poll_timers(is("timers") ? 2 : 1);
	else if (is("timer"))
		wait_for_signals();
	else if (serves)
		serve();
	else
		for (;;) {
			wait_once();
			work();
		}
	return arg;
}

int main(int argc, char **argv)
{
	struct sched_param priority = { .sched_priority = 60 };
	pthread_t feeding;

	kind = argc > 1 ? argv[1] : "absolute";
	serves = strncmp(kind, "served", 6) == 0;
	signal(SIGUSR1, handle);
	sem_init(&posted, 0, 0);
	nothing = epoll_create1(0);
	waits = semget(IPC_PRIVATE, 1, 0600);
	if (pipe2(pipes, 0) || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 1;
	pthread_create(&looping, NULL, loop, NULL);
	pthread_setname_np(looping, "looping");
	pthread_setschedparam(looping, SCHED_FIFO, &priority);
	if (is("signal") || is("semaphore") || is("pipe") || is("socket") || serves) {
		priority.sched_priority = 70;
		pthread_create(&feeding, NULL, feed, NULL);
		pthread_setname_np(feeding, "feeding");
		pthread_setschedparam(feeding, SCHED_FIFO, &priority);
	}
	alarm(60);
	pthread_join(looping, NULL);
	semctl(waits, 0, IPC_RMID);
	return 0;
}
