/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mainloop.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "qemu.h"

/* The end of the board does not wait for its CPUs: they may spin for ever. */
#define LOOK_FOR_END_NS 20000000

static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cpus_began_to_wait;
	bool has_cpus;
	bool cpus_wait;
	_Atomic bool saw_end; /* set before QEMU forgets that its end was asked for */
	qemu_lock_fn take_lock;
	qemu_wait_fn wait;
} loop = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static void say_cpus_wait(bool they_do)
{
	pthread_mutex_lock(&loop.lock);
	loop.cpus_wait = they_do;
	pthread_cond_signal(&loop.cpus_began_to_wait);
	pthread_mutex_unlock(&loop.lock);
}

static struct timespec soon(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += LOOK_FOR_END_NS;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return at;
}

/* With loop.lock or the big lock; a writer of these fields has both. */
static bool may_go_on(void)
{
	return !loop.has_cpus || loop.cpus_wait || qemu_shutdown_requested_get();
}

static void stand_still_while_cpus_execute(void)
{
	pthread_mutex_lock(&loop.lock);
	while (!may_go_on()) {
		struct timespec at = soon();

		pthread_cond_timedwait(&loop.cpus_began_to_wait, &loop.lock, &at);
	}
	pthread_mutex_unlock(&loop.lock);
}

static bool is_of(const char *file, const char *name)
{
	size_t length = strlen(file), wanted = strlen(name);

	return length >= wanted && strcmp(file + length - wanted, name) == 0;
}

/* The loop that executes the CPUs takes the lock when its thread begins, before it looks
 * at timers, and after each turn: in this order, first by time and by line. */
static struct {
	int first, head;
} line_of;

static void at_lock_of_cpus(int line)
{
	if (!line_of.first)
		line_of.first = line;
	else if (!line_of.head)
		line_of.head = line;
	clock_set_turns_visible(line_of.head > line_of.first);
	if (line == line_of.head)
		clock_before_turns();
	else if (line_of.head)
		clock_end_turn();
}

/* QEMU has other threads, too, which come at moments that the host decides. They run no
 * CPU, and must not touch what is kept for the CPUs while those execute. */
static void take_lock_for_cpu(void *big_lock, const char *file, int line)
{
	static const char *of_cpus;

	loop.take_lock(big_lock, file, line);
	if (!of_cpus && is_of(file, "tcg-accel-ops-rr.c"))
		of_cpus = file;
	if (file == of_cpus)
		at_lock_of_cpus(line);
	else if (current_cpu && cpus_is_executing())
		clock_may_wake(); /* what one CPU does to another is under the lock */
}

/* Between the look and the lock the CPUs may have begun again: looked at once more. */
static void take_lock(void *big_lock, const char *file, int line)
{
	if (!pthread_equal(pthread_self(), loop.thread)) {
		take_lock_for_cpu(big_lock, file, line);
		return;
	}
	for (;;) {
		stand_still_while_cpus_execute();
		loop.take_lock(big_lock, file, line);
		if (may_go_on()) {
			if (qemu_shutdown_requested_get())
				loop.saw_end = true;
			return;
		}
		qemu_mutex_unlock_impl(big_lock, file, line);
	}
}

bool mainloop_is_to_end(void)
{
	return qemu_shutdown_requested_get() || loop.saw_end;
}

static void wait(void *condition, void *big_lock, const char *file, int line)
{
	bool of_cpu = qemu_in_vcpu_thread();

	if (of_cpu)
		say_cpus_wait(true);
	loop.wait(condition, big_lock, file, line);
	if (of_cpu)
		say_cpus_wait(false);
}

void mainloop_init(void)
{
	pthread_condattr_t steady;

	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_cond_init(&loop.cpus_began_to_wait, &steady);
	pthread_condattr_destroy(&steady);
	loop.thread = pthread_self();
	loop.take_lock = bql_mutex_lock_func;
	loop.wait = qemu_cond_wait_func;
	bql_mutex_lock_func = take_lock;
	qemu_cond_wait_func = wait;
}

void mainloop_at_cpu(void)
{
	pthread_mutex_lock(&loop.lock);
	loop.has_cpus = true;
	pthread_mutex_unlock(&loop.lock);
}
