/* SPDX-License-Identifier: MIT */
/*
 * twenty CYCLES - threads of one period, each with one offence in every fifth cycle, for
 * which a helper on the other CPU holds a lock or sends something. Each counts what it did
 * itself: how often it slept within its cycles, was preempted and faulted by the kernel's
 * count; how often it slept for a lock and missed a period by its own. At the end it prints
 * "NAME sleeps preemptions faults missed held times" for each.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define US     1000LL
#define PERIOD (20000 * US)
#define SLOT   (700 * US)
#define EVERY  5
#define PAGE   4096
#define PAGES  7
#define BEFORE (100 * US)
#define AFTER  (250 * US)

struct thread {
	const char *name;
	void (*offend)(struct thread *t);
	/* What the helper does before, and behind, the begin of the cycle. */
	void (*before)(void), (*after)(void);
	int priority;
	pthread_t id;
	long long due;
	int skip, waits;
	long sleeps, preemptions, faults, missed, held, times;
};

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, lending, timed;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int is_told, pipes[2], sockets[2], events, polled, files[2];
static mqd_t queue;
static pthread_t waits_for_signal;
static char *memory, *mapped;
static long long start;
static int cycles;

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_to(long long at)
{
	struct timespec t = { at / 1000000000, at % 1000000000 };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void spin_to(long long at)
{
	while (now() < at)
		;
}

/* --- locks that the helper holds ------------------------------------------------------- */

static void plain_before(void)
{
	pthread_mutex_lock(&plain);
}

static void plain_after(void)
{
	pthread_mutex_unlock(&plain);
}

static void plain_offend(struct thread *t)
{
	if (pthread_mutex_trylock(&plain)) {
		t->waits = 1;
		pthread_mutex_lock(&plain);
	}
	pthread_mutex_unlock(&plain);
}

static void lending_before(void)
{
	pthread_mutex_lock(&lending);
}

static void lending_after(void)
{
	pthread_mutex_unlock(&lending);
}

static void lending_offend(struct thread *t)
{
	if (pthread_mutex_trylock(&lending)) {
		t->waits = 1;
		pthread_mutex_lock(&lending);
	}
	pthread_mutex_unlock(&lending);
}

static void timed_before(void)
{
	pthread_mutex_lock(&timed);
}

static void timed_after(void)
{
	pthread_mutex_unlock(&timed);
}

static void timed_offend(struct thread *t)
{
	struct timespec end;

	if (pthread_mutex_trylock(&timed)) {
		t->waits = 1;
		clock_gettime(CLOCK_REALTIME, &end);
		end.tv_sec++;
		pthread_mutex_timedlock(&timed, &end);
	}
	pthread_mutex_unlock(&timed);
}

static void rwlock_before(void)
{
	pthread_rwlock_wrlock(&rwlock);
}

static void rwlock_after(void)
{
	pthread_rwlock_unlock(&rwlock);
}

static void rwlock_offend(struct thread *t)
{
	if (pthread_rwlock_trywrlock(&rwlock)) {
		t->waits = 1;
		pthread_rwlock_wrlock(&rwlock);
	}
	pthread_rwlock_unlock(&rwlock);
}

static void flock_before(void)
{
	flock(files[0], LOCK_EX);
}

static void flock_after(void)
{
	flock(files[0], LOCK_UN);
}

static void flock_offend(struct thread *t)
{
	if (flock(files[1], LOCK_EX | LOCK_NB)) {
		t->waits = 1;
		flock(files[1], LOCK_EX);
	}
	flock(files[1], LOCK_UN);
}

/* --- waits that the helper ends --------------------------------------------------------- */

static void condition_after(void)
{
	pthread_mutex_lock(&guard);
	is_told = 1;
	pthread_cond_signal(&told);
	pthread_mutex_unlock(&guard);
}

static void condition_offend(struct thread *t)
{
	(void)t;
	pthread_mutex_lock(&guard);
	while (!is_told)
		pthread_cond_wait(&told, &guard);
	is_told = 0;
	pthread_mutex_unlock(&guard);
}

static void semaphore_after(void)
{
	sem_post(&semaphore);
}

static void semaphore_offend(struct thread *t)
{
	(void)t;
	sem_wait(&semaphore);
}

static void gave(ssize_t size)
{
	if (size <= 0)
		abort();
}

static void pipe_after(void)
{
	gave(write(pipes[1], "x", 1));
}

static void pipe_offend(struct thread *t)
{
	char c;

	(void)t;
	gave(read(pipes[0], &c, 1));
}

static void socket_after(void)
{
	gave(send(sockets[1], "x", 1, 0));
}

static void socket_offend(struct thread *t)
{
	char c;

	(void)t;
	gave(recv(sockets[0], &c, 1, 0));
}

static void eventfd_after(void)
{
	uint64_t one = 1;

	gave(write(events, &one, sizeof(one)));
}

static void eventfd_offend(struct thread *t)
{
	uint64_t value;

	(void)t;
	gave(read(events, &value, sizeof(value)));
}

static void queue_after(void)
{
	if (mq_send(queue, "x", 1, 0))
		abort();
}

static void queue_offend(struct thread *t)
{
	char message[16];

	(void)t;
	gave(mq_receive(queue, message, sizeof(message), NULL));
}

static void signal_after(void)
{
	pthread_kill(waits_for_signal, SIGUSR1);
}

static void signal_offend(struct thread *t)
{
	sigset_t set;
	int number;

	(void)t;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &number);
}

/* --- sleeps of its own ------------------------------------------------------------------ */

static void poll_offend(struct thread *t)
{
	struct pollfd file = { pipes[0], 0, 0 };

	(void)t;
	poll(&file, 1, 1);
}

static void epoll_offend(struct thread *t)
{
	struct epoll_event event;

	(void)t;
	epoll_wait(polled, &event, 1, 1);
}

static void nap_offend(struct thread *t)
{
	(void)t;
	usleep(200);
}

/* --- page faults ------------------------------------------------------------------------ */

static void touch(char *at)
{
	for (int i = 0; i < PAGES; i++)
		((volatile char *)at)[i * PAGE] = 1;
}

static void again_offend(struct thread *t)
{
	(void)t;
	madvise(memory, (size_t)PAGES * PAGE, MADV_DONTNEED);
	touch(memory);
}

static void pages_offend(struct thread *t)
{
	char *new = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)t;
	touch(new);
	munmap(new, (size_t)PAGES * PAGE);
}

static void file_offend(struct thread *t)
{
	(void)t;
	madvise(mapped, (size_t)PAGES * PAGE, MADV_DONTNEED);
	touch(mapped);
}

static void stack_offend(struct thread *t)
{
	/* Each time deeper than before: no page of it was ever used. */
	char *here = alloca((size_t)(t->times + 1) * 2 * PAGES * PAGE);

	touch(here);
}

/* --- time ------------------------------------------------------------------------------- */

static void overrun_offend(struct thread *t)
{
	spin_to(t->due + PERIOD + PERIOD / 4);
}

static void skip_offend(struct thread *t)
{
	t->skip = 2;
}

static void pushed_offend(struct thread *t)
{
	spin_to(t->due + 150 * US);
}

#define THREAD(n, o, b, a, p)                                                          \
	{ .name = (n), .offend = (o), .before = (b), .after = (a), .priority = (p) }

static struct thread threads[] = {
	THREAD("mutex", plain_offend, plain_before, plain_after, 80),
	THREAD("lending", lending_offend, lending_before, lending_after, 80),
	THREAD("timedlock", timed_offend, timed_before, timed_after, 80),
	THREAD("rwlock", rwlock_offend, rwlock_before, rwlock_after, 80),
	THREAD("flock", flock_offend, flock_before, flock_after, 80),
	THREAD("condition", condition_offend, NULL, condition_after, 80),
	THREAD("semaphore", semaphore_offend, NULL, semaphore_after, 80),
	THREAD("pipe", pipe_offend, NULL, pipe_after, 80),
	THREAD("socket", socket_offend, NULL, socket_after, 80),
	THREAD("eventfd", eventfd_offend, NULL, eventfd_after, 80),
	THREAD("queue", queue_offend, NULL, queue_after, 80),
	THREAD("signal", signal_offend, NULL, signal_after, 80),
	THREAD("poll", poll_offend, NULL, NULL, 80),
	THREAD("epoll", epoll_offend, NULL, NULL, 80),
	THREAD("nap", nap_offend, NULL, NULL, 80),
	THREAD("again", again_offend, NULL, NULL, 80),
	THREAD("pages", pages_offend, NULL, NULL, 80),
	THREAD("file", file_offend, NULL, NULL, 80),
	THREAD("stack", stack_offend, NULL, NULL, 80),
	THREAD("pushed", pushed_offend, NULL, NULL, 50),
	THREAD("skip", skip_offend, NULL, NULL, 80),
	THREAD("overrun", overrun_offend, NULL, NULL, 30),
};

#define THREADS (int)(sizeof(threads) / sizeof(threads[0]))

static int offends(int cycle)
{
	return cycle % EVERY == EVERY - 1;
}

static void *run(void *arg)
{
	struct thread *t = arg;

	prctl(PR_SET_NAME, t->name);
	t->due = start + SLOT * (t - threads);
	/* After its last cycle it waits once more, as one that exits is not whole. */
	for (int i = 0;; i++, t->due += PERIOD) {
		struct rusage then, after;

		sleep_to(t->due);
		if (i >= cycles)
			return NULL;
		getrusage(RUSAGE_THREAD, &then);
		if (offends(i)) {
			t->offend(t);
			t->times++;
		}
		getrusage(RUSAGE_THREAD, &after);
		/* One that spins has not slept. */
		t->held += t->waits && after.ru_nvcsw > then.ru_nvcsw;
		t->waits = 0;
		t->sleeps += after.ru_nvcsw - then.ru_nvcsw;
		t->preemptions += after.ru_nivcsw - then.ru_nivcsw;
		t->faults += after.ru_minflt + after.ru_majflt - then.ru_minflt -
			     then.ru_majflt;
		t->missed += now() > t->due + PERIOD;
		for (; t->skip; t->skip--, i++) {
			t->due += PERIOD;
			t->missed++;
		}
	}
}

static void *push(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "urgent");
	for (int i = 0; i < cycles; i++)
		for (int k = 0; k < THREADS; k++)
			if (offends(i) && !strcmp(threads[k].name, "pushed")) {
				long long due = start + i * PERIOD + k * SLOT;

				sleep_to(due + 50 * US);
				spin_to(due + 80 * US);
			}
	return NULL;
}

static void *help(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "helper");
	for (int i = 0; i < cycles; i++)
		for (int k = 0; k < THREADS && offends(i); k++) {
			long long due = start + i * PERIOD + k * SLOT;

			if (!threads[k].after)
				continue;
			sleep_to(due - BEFORE);
			if (threads[k].before)
				threads[k].before();
			sleep_to(due + AFTER);
			threads[k].after();
		}
	return NULL;
}

static pthread_t begin(void *(*of)(void *), void *arg, int priority, int cpu)
{
	struct sched_param s = { .sched_priority = priority };
	pthread_attr_t a;
	cpu_set_t set;
	pthread_t id;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_attr_init(&a);
	pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&a, SCHED_FIFO);
	pthread_attr_setschedparam(&a, &s);
	if (pthread_create(&id, &a, of, arg)) {
		perror("thread");
		exit(1);
	}
	pthread_setaffinity_np(id, sizeof(set), &set);
	return id;
}

static int file_of(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT, 0600);

	if (file < 0 || ftruncate(file, (off_t)PAGES * PAGE)) {
		perror(path);
		exit(1);
	}
	return file;
}

static void prepare(void)
{
	struct mq_attr most = { .mq_maxmsg = 4, .mq_msgsize = 16 };
	pthread_mutexattr_t lends;
	sigset_t set;

	pthread_mutexattr_init(&lends);
	pthread_mutexattr_setprotocol(&lends, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lending, &lends);
	pthread_mutex_init(&timed, NULL);
	sem_init(&semaphore, 0, 0);
	if (pipe(pipes) || socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets)) {
		perror("pipe");
		exit(1);
	}
	events = eventfd(0, 0);
	polled = epoll_create1(0);
	queue = mq_open("/twenty", O_RDWR | O_CREAT, 0600, &most);
	files[0] = file_of("/tmp/twenty");
	files[1] = file_of("/tmp/twenty");
	mapped = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
		      files[0], 0);
	memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
	pthread_t helper, urgent;

	cycles = argc > 1 ? atoi(argv[1]) : 50;
	prepare();
	start = (now() / PERIOD + 10) * PERIOD;
	for (int k = 0; k < THREADS; k++) {
		threads[k].id = begin(run, &threads[k], threads[k].priority, 1);
		if (!strcmp(threads[k].name, "signal"))
			waits_for_signal = threads[k].id;
	}
	helper = begin(help, NULL, 20, 0);
	urgent = begin(push, NULL, 90, 1);
	pthread_join(helper, NULL);
	pthread_join(urgent, NULL);
	for (int k = 0; k < THREADS; k++) {
		struct thread *t = &threads[k];

		pthread_join(t->id, NULL);
		printf("%s %ld %ld %ld %ld %ld %ld\n", t->name, t->sleeps,
		       t->preemptions, t->faults, t->missed, t->held, t->times);
	}
	return 0;
}
