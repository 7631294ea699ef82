/* SPDX-License-Identifier: MIT */
#include "measure/eventkind.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread/rawcall.h"

#define EVENT_SIGNAL       (SIGRTMIN + 2) /* blocked in every thread, as all are */
#define KERNEL_SIGSET      8
#define HWLAT_THRESHOLD_US 10 /* the kernel's own */
#define HWLAT_MOST_US      60000000
#define HWLAT_LEAST_US     100000 /* in each it sleeps some ms too long */
#define MESSAGES           8      /* of a queue; an ordinary user may ask for ten */

/* --- refusals -------------------------------------------------------------------- */

void event_refuse(struct event_refusal *refusal, const char *what, int err)
{
	refusal->cause = err == -EPERM || err == -EACCES ? "capability" : "event";
	snprintf(refusal->why, sizeof(refusal->why), "cannot %s: %s", what,
		 strerror(-err));
	if (err == -EPERM || err == -EACCES)
		refusal->remedy = "run through sudo, or choose another --event";
	else if (err == -EMFILE)
		refusal->remedy = "raise the limits of files and message queues "
				  "(ulimit -n, ulimit -q), or choose another --event";
	else
		refusal->remedy = "choose another one: rtscope run --event list";
}

static int refuse_errno(struct event_refusal *refusal, const char *what)
{
	int err = -errno;

	event_refuse(refusal, what, err);
	return err;
}

/* --- events that are numbers in a file descriptor -------------------------------- */

int event_send_number(struct event_ends *e, uint32_t number)
{
	long done = rawcall4(SYS_write, e->send_fd, (long)&number,
			     (const void *)sizeof(number), NULL);

	if (done < 0)
		return (int)done;
	return done == sizeof(number) ? 0 : -EIO;
}

int64_t event_receive_number(struct event_ends *e)
{
	uint32_t number;
	long done = rawcall4(SYS_read, e->receive_fd, (long)&number,
			     (const void *)sizeof(number), NULL);

	if (done < 0)
		return done;
	return done == sizeof(number) ? (int64_t)number : -EPIPE;
}

static int open_pipe(struct event_ends *e, const struct event_choice *choice,
		     struct event_refusal *refusal)
{
	int fd[2];

	(void)choice;
	if (pipe2(fd, O_CLOEXEC) < 0)
		return refuse_errno(refusal, "make a pipe");
	e->receive_fd = fd[0];
	e->send_fd = fd[1];
	/* of this end only: a full pipe must not hold the stimulus */
	if (fcntl(fd[1], F_SETFL, O_NONBLOCK) < 0)
		return refuse_errno(refusal, "make a pipe that does not block");
	return 0;
}

/* --- eventfd, as a semaphore: no two events become one --------------------------- */

static int open_eventfd(struct event_ends *e, const struct event_choice *choice,
			struct event_refusal *refusal)
{
	(void)choice;
	e->receive_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (e->receive_fd < 0)
		return refuse_errno(refusal, "make an eventfd");
	e->send_fd = fcntl(e->receive_fd, F_DUPFD_CLOEXEC, 0);
	return e->send_fd < 0 ? refuse_errno(refusal, "duplicate an eventfd") : 0;
}

static int send_eventfd(struct event_ends *e, uint32_t number)
{
	const uint64_t one = 1;
	long done = rawcall4(SYS_write, e->send_fd, (long)&one,
			     (const void *)sizeof(one), NULL);

	(void)number;
	return done < 0 ? (int)done : 0;
}

static int64_t receive_eventfd(struct event_ends *e)
{
	uint64_t one;
	long done = rawcall4(SYS_read, e->receive_fd, (long)&one,
			     (const void *)sizeof(one), NULL);

	return done < 0 ? done : e->received++;
}

/* --- futex ----------------------------------------------------------------------- */

static int open_futex(struct event_ends *e, const struct event_choice *choice,
		      struct event_refusal *refusal)
{
	(void)e;
	(void)choice;
	(void)refusal;
	return 0;
}

static int send_futex(struct event_ends *e, uint32_t number)
{
	/* release: pairs with the receiver's acquire */
	atomic_store_explicit(&e->word, number + 1, memory_order_release);
	return (int)rawcall4(SYS_futex, (long)&e->word, FUTEX_WAKE_PRIVATE,
			     (const void *)1, NULL) < 0
		       ? -EIO
		       : 0;
}

static int64_t receive_futex(struct event_ends *e)
{
	/* acquire: pairs with the stimulus' release */
	while (atomic_load_explicit(&e->word, memory_order_acquire) == e->received) {
		long err = rawcall4(SYS_futex, (long)&e->word, FUTEX_WAIT_PRIVATE,
				    (const void *)(uintptr_t)e->received, NULL);

		if (err < 0 && err != -EAGAIN)
			return err;
	}
	return e->received++;
}

/* --- signal: a real-time signal, which is queued and has a number ---------------- */

static int open_signal(struct event_ends *e, const struct event_choice *choice,
		       struct event_refusal *refusal)
{
	(void)choice;
	(void)refusal;
	e->info = (siginfo_t){ .si_signo = EVENT_SIGNAL, .si_code = SI_QUEUE };
	e->info.si_pid = getpid();
	e->info.si_uid = getuid();
	return 0;
}

static int send_signal(struct event_ends *e, uint32_t number)
{
	e->info.si_value.sival_int = (int)number;
	return (int)rawcall4(SYS_rt_tgsigqueueinfo, e->info.si_pid, e->receiver,
			     (const void *)(uintptr_t)EVENT_SIGNAL, &e->info);
}

static int64_t receive_signal(struct event_ends *e)
{
	const uint64_t only = UINT64_C(1) << (EVENT_SIGNAL - 1);
	siginfo_t info;
	long signo = rawcall4(SYS_rt_sigtimedwait, (long)&only, (long)&info, NULL,
			      (void *)KERNEL_SIGSET);

	(void)e;
	return signo < 0 ? signo : (int64_t)(uint32_t)info.si_value.sival_int;
}

/* --- mq: a POSIX message queue ---------------------------------------------------- */

static int open_mq(struct event_ends *e, const struct event_choice *choice,
		   struct event_refusal *refusal)
{
	static unsigned int queues;
	struct mq_attr attr = { .mq_maxmsg = MESSAGES, .mq_msgsize = sizeof(uint32_t) };
	char name[48];
	int err = 0;

	(void)choice;
	snprintf(name, sizeof(name), "/rtscope-%d-%u", (int)getpid(), queues++);
	e->receive_fd =
		mq_open(name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attr);
	if (e->receive_fd < 0)
		return refuse_errno(refusal, "make a message queue");
	e->send_fd = mq_open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (e->send_fd < 0)
		err = refuse_errno(refusal, "open a message queue");
	mq_unlink(name); /* both ends are open: nothing of it can be left behind */
	return err;
}

static int send_mq(struct event_ends *e, uint32_t number)
{
	return (int)rawcall5(SYS_mq_timedsend, e->send_fd, &number, sizeof(number), 0,
			     NULL);
}

static int64_t receive_mq(struct event_ends *e)
{
	uint32_t number = 0;
	long done = rawcall5(SYS_mq_timedreceive, e->receive_fd, &number,
			     sizeof(number), 0, NULL);

	return done < 0 ? done : (int64_t)number;
}

/* --- sem: a POSIX semaphore ------------------------------------------------------- */

static int open_sem(struct event_ends *e, const struct event_choice *choice,
		    struct event_refusal *refusal)
{
	(void)choice;
	return sem_init(&e->sem, 0, 0) < 0 ? refuse_errno(refusal, "make a semaphore")
					   : 0;
}

static int send_sem(struct event_ends *e, uint32_t number)
{
	(void)number;
	if (sem_post(&e->sem) == 0)
		return 0;
	return errno == EOVERFLOW ? -EAGAIN : -errno;
}

static int64_t receive_sem(struct event_ends *e)
{
	return sem_wait(&e->sem) < 0 ? -errno : (int64_t)e->received++;
}

/* --- cond: a condition variable with its mutex ------------------------------------ */

static int open_cond(struct event_ends *e, const struct event_choice *choice,
		     struct event_refusal *refusal)
{
	pthread_mutexattr_t inherit;

	(void)choice;
	(void)refusal;
	pthread_mutexattr_init(&inherit);
	pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&e->mutex, &inherit);
	pthread_mutexattr_destroy(&inherit);
	pthread_cond_init(&e->cond, NULL);
	return 0;
}

static int send_cond(struct event_ends *e, uint32_t number)
{
	pthread_mutex_lock(&e->mutex);
	e->posted = number + 1;
	pthread_cond_signal(&e->cond);
	pthread_mutex_unlock(&e->mutex);
	return 0;
}

static int64_t receive_cond(struct event_ends *e)
{
	bool closed = false;

	pthread_mutex_lock(&e->mutex);
	while (e->posted == e->received && !closed) {
		closed = e->closed;
		e->closed = false;
		if (!closed)
			pthread_cond_wait(&e->cond, &e->mutex);
	}
	pthread_mutex_unlock(&e->mutex);
	return closed ? -EINTR : (int64_t)e->received++;
}

static void close_cond_wait(struct event_ends *e)
{
	pthread_mutex_lock(&e->mutex);
	e->closed = true;
	pthread_cond_signal(&e->cond);
	pthread_mutex_unlock(&e->mutex);
}

/* --- the table, and its users ------------------------------------------------------ */

static const struct event_kind thread_kinds[] = {
	{ "futex", open_futex, send_futex, receive_futex, NULL, false },
	{ "eventfd", open_eventfd, send_eventfd, receive_eventfd, NULL, false },
	{ "pipe", open_pipe, event_send_number, event_receive_number, NULL, false },
	{ "signal", open_signal, send_signal, receive_signal, NULL, false },
	{ "mq", open_mq, send_mq, receive_mq, NULL, false },
	{ "sem", open_sem, send_sem, receive_sem, NULL, false },
	{ "cond", open_cond, send_cond, receive_cond, close_cond_wait, false },
};

#define THREAD_KINDS (sizeof(thread_kinds) / sizeof(thread_kinds[0]))

static const struct event_kind *const device_kinds[] = {
	&event_kind_pty, &event_kind_serial, &event_kind_udp, &event_kind_raw,
	&event_kind_xdp, &event_kind_can,    &event_kind_uio,
};

#define DEVICE_KINDS (sizeof(device_kinds) / sizeof(device_kinds[0]))

static const struct event_kind *kind_of(const char *name)
{
	for (size_t i = 0; i < THREAD_KINDS; i++)
		if (strcmp(thread_kinds[i].name, name) == 0)
			return &thread_kinds[i];
	for (size_t i = 0; i < DEVICE_KINDS; i++)
		if (strcmp(device_kinds[i]->name, name) == 0)
			return device_kinds[i];
	return NULL;
}

static int number_of(const char *text, long low, long high, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	return errno || end == text || *end || *out < low || *out > high ? -EINVAL : 0;
}

static int parse_interface(const char *text, char out[EVENT_NAME_MAX])
{
	if (!*text || strlen(text) >= EVENT_NAME_MAX || strpbrk(text, "/ "))
		return -EINVAL;
	snprintf(out, EVENT_NAME_MAX, "%s", text);
	return 0;
}

static int parse_hwlat_option(const char *key, const char *value,
			      struct event_choice *out)
{
	bool threshold = strcmp(key, "threshold") == 0;
	long number;

	if ((!threshold && strcmp(key, "width") != 0) ||
	    number_of(value, 1, HWLAT_MOST_US, &number))
		return -EINVAL;
	*(threshold ? &out->hwlat.threshold_us : &out->hwlat.width_us) = number;
	return 0;
}

static int parse_event_option(const char *key, const char *value,
			      struct event_choice *out)
{
	long number;

	if (out->hwlat.asked)
		return parse_hwlat_option(key, value, out);
	if (strcmp(key, "priority") == 0) {
		if (number_of(value, 1, 99, &number))
			return -EINVAL;
		out->priority = (unsigned int)number;
		return 0;
	}
	if (strcmp(key, "cpu") == 0) {
		out->cpu =
			strcmp(value, "same") == 0 ? EVENT_CPU_SAME : EVENT_CPU_OTHER;
		if (out->cpu == EVENT_CPU_SAME || strcmp(value, "other") == 0)
			return 0;
		if (number_of(value, 0, INT16_MAX, &number))
			return -EINVAL;
		out->cpu = (int)number;
		return 0;
	}
	if (!out->kind->between)
		return -EINVAL;
	if (strcmp(key, "from") == 0)
		return parse_interface(value, out->from);
	return strcmp(key, "to") == 0 ? parse_interface(value, out->to) : -EINVAL;
}

int event_parse(const char *text, struct event_choice *out)
{
	char copy[128], *rest = NULL, *word;

	*out = (struct event_choice){ .cpu = EVENT_CPU_OTHER };
	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return -EINVAL;
	word = strtok_r(copy, ":", &rest);
	if (!word)
		return -EINVAL;
	out->polls = strcmp(word, "poll") == 0;
	out->timerlat = strcmp(word, "timerlat") == 0;
	if (out->polls || out->timerlat || strcmp(word, "timer") == 0)
		return strtok_r(NULL, ":", &rest) ? -EINVAL : 0;
	out->kind = kind_of(word);
	out->hwlat.asked = strcmp(word, "hwlat") == 0;
	out->hwlat.threshold_us = HWLAT_THRESHOLD_US;
	if (!out->kind && !out->hwlat.asked)
		return -EINVAL;
	while ((word = strtok_r(NULL, ":", &rest))) {
		char *equals = strchr(word, '=');

		if (!equals)
			return -EINVAL;
		*equals = '\0';
		if (parse_event_option(word, equals + 1, out))
			return -EINVAL;
	}
	return !*out->from == !*out->to ? 0 : -EINVAL;
}

const char *event_fit(struct event_choice *choice, int64_t interval_ns)
{
	const int64_t window_us = interval_ns / 1000;

	if (choice->timerlat &&
	    (window_us < 100 || window_us > 1000000 || interval_ns % 1000))
		return "the interval is its period: choose whole us from 100 us to 1 s";
	if (!choice->hwlat.asked)
		return NULL;
	if (window_us < HWLAT_LEAST_US)
		return "the interval is its window: choose 100 ms or more";
	if (!choice->hwlat.width_us)
		choice->hwlat.width_us = window_us / 2;
	return choice->hwlat.width_us < window_us
		       ? NULL
		       : "the width must be less than the interval";
}

const char *event_name(const struct event_choice *choice)
{
	if (choice->polls)
		return "poll";
	if (choice->hwlat.asked)
		return "hwlat";
	if (choice->timerlat)
		return "timerlat";
	return choice->kind ? choice->kind->name : "timer";
}

void event_ends_init(struct event_ends *e)
{
	memset(e, 0, sizeof(*e));
	e->send_fd = e->receive_fd = e->device.config_fd = -1;
	xdp_socket_init(&e->xdp);
}

void event_ends_close(struct event_ends *e)
{
	if (e->send_fd >= 0)
		close(e->send_fd);
	if (e->receive_fd >= 0)
		close(e->receive_fd);
	xdp_socket_close(&e->xdp);
	if (e->device.config_fd >= 0)
		close(e->device.config_fd);
	if (e->device.registers)
		munmap((void *)(uintptr_t)e->device.registers, EVENT_REGISTERS);
	event_ends_init(e);
}
