/* SPDX-License-Identifier: MIT */
#include "demo/demothread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread/clock.h"

#define TURNS 64 /* of computing between two looks at the clock: under 1 us */
#define PAGE_BYTES                                                                     \
	4096 /* touched at this step: no page is larger on some, none smaller */

const char *demothread_word(enum demo_event_kind kind)
{
	static const char *const words[] = {
		[DEMO_EVENT_WOKE] = "woke", [DEMO_EVENT_RAN] = "ran",
		[DEMO_EVENT_UNIT] = "unit", [DEMO_EVENT_WANT] = "want",
		[DEMO_EVENT_GOT] = "got",   [DEMO_EVENT_LEFT] = "left",
		[DEMO_EVENT_TOOK] = "took", [DEMO_EVENT_FAULTS] = "faults",
		[DEMO_EVENT_DONE] = "done",
	};

	return words[kind];
}

static bool stopped(const struct demo_thread *t)
{
	return atomic_load_explicit(&t->stage->stop, memory_order_relaxed);
}

static int64_t since_start_ns(const struct demo_thread *t)
{
	return clock_now_ns() - t->stage->start_ns;
}

static int64_t cpu_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return timespec_ns(now);
}

/* The last place is for the end: without it nobody knows when the thread was done. */
static void note(struct demo_thread *t, unsigned int step, enum demo_event_kind kind,
		 int64_t at_ns, int64_t value)
{
	if (t->events == DEMO_MAX_EVENTS - (kind != DEMO_EVENT_DONE)) {
		t->events_lost++;
		return;
	}
	t->event[t->events++] =
		(struct demo_event){ at_ns, value, (uint16_t)step, (uint8_t)kind };
}

static void sleep_until(struct demo_thread *t, unsigned int step, int64_t due_ns)
{
	struct timespec until = ns_timespec(t->stage->start_ns + due_ns);

	while (!stopped(t) && clock_sleep_until(&until) == EINTR)
		;
	note(t, step, DEMO_EVENT_WOKE, since_start_ns(t), due_ns);
}

/* The empty statements stay: what the compiler may leave out would show nothing. */
static void turn(void)
{
	for (int i = 0; i < TURNS; i++)
		__asm__ volatile("");
}

/* One look at the clock: what is longer ago than a pause was time without the CPU. */
static int64_t look(struct demo_thread *t, unsigned int step)
{
	int64_t now_ns;

	turn();
	now_ns = since_start_ns(t);
	if (now_ns - t->ran_to_ns > DEMO_PAUSE_NS) {
		note(t, step, DEMO_EVENT_RAN, t->ran_from_ns, t->ran_to_ns);
		t->ran_from_ns = now_ns;
	}
	t->ran_to_ns = now_ns;
	return now_ns;
}

/* Until it has used so much CPU time, or until a time, whichever comes first. */
static void compute(struct demo_thread *t, unsigned int step, int64_t cpu_ns,
		    int64_t until_ns)
{
	const int64_t begun_ns = cpu_time_ns();
	int64_t unit_ns = begun_ns + DEMO_UNIT_NS;
	int64_t used_ns = begun_ns, now_ns;

	t->ran_from_ns = t->ran_to_ns = since_start_ns(t);
	do {
		now_ns = look(t, step);
		used_ns = cpu_time_ns();
		if (used_ns >= unit_ns) {
			note(t, step, DEMO_EVENT_UNIT, now_ns, ++t->units);
			unit_ns += DEMO_UNIT_NS;
		}
	} while (used_ns - begun_ns < cpu_ns && now_ns < until_ns && !stopped(t));
	note(t, step, DEMO_EVENT_RAN, t->ran_from_ns, t->ran_to_ns);
}

static void touch(char *bytes, int64_t n)
{
	for (int64_t i = 0; i < n; i += PAGE_BYTES)
		((volatile char *)bytes)[i] = 1;
}

/* Writes to memory, and notes how long that took and how many pages were not there. */
static void use_memory(struct demo_thread *t, unsigned int step,
		       const struct demo_step *s)
{
	const int64_t faults = usage_now().minor_faults;
	const int64_t from_ns = since_start_ns(t);
	const size_t bytes = (size_t)s->arg;
	char *memory = t->pool;

	if (s->op == DEMO_TOUCH)
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else if (s->op == DEMO_ALLOC)
		memory = malloc(bytes);
	if (memory && memory != MAP_FAILED) {
		touch(memory, s->arg);
		if (s->op == DEMO_TOUCH)
			munmap(memory, bytes);
		else if (s->op == DEMO_ALLOC)
			free(memory);
	}
	note(t, step, DEMO_EVENT_TOOK, from_ns, since_start_ns(t) - from_ns);
	note(t, step, DEMO_EVENT_FAULTS, from_ns, usage_now().minor_faults - faults);
}

static void take_lock(struct demo_thread *t, unsigned int step, int64_t which)
{
	note(t, step, DEMO_EVENT_WANT, since_start_ns(t), which);
	pthread_mutex_lock(&t->stage->lock[which]);
	note(t, step, DEMO_EVENT_GOT, since_start_ns(t), which);
}

static void leave_lock(struct demo_thread *t, unsigned int step, int64_t which)
{
	/* before: who waits may run before this thread does again */
	note(t, step, DEMO_EVENT_LEFT, since_start_ns(t), which);
	pthread_mutex_unlock(&t->stage->lock[which]);
}

static void take_step(struct demo_thread *t, unsigned int i)
{
	const struct demo_step *s = &t->script.step[i];
	int64_t now_ns;

	switch (s->op) {
	case DEMO_AT:
		sleep_until(t, i, s->arg);
		break;
	case DEMO_SLEEP:
		sleep_until(t, i, since_start_ns(t) + s->arg);
		break;
	case DEMO_EVERY:
		now_ns = since_start_ns(t);
		sleep_until(t, i, s->arg ? (now_ns / s->arg + 1) * s->arg : now_ns);
		break;
	case DEMO_RUN:
		compute(t, i, s->arg, INT64_MAX);
		break;
	case DEMO_UNTIL:
		compute(t, i, INT64_MAX, s->arg);
		break;
	case DEMO_LOCK:
		take_lock(t, i, s->arg);
		break;
	case DEMO_UNLOCK:
		leave_lock(t, i, s->arg);
		break;
	case DEMO_YIELD:
		sched_yield();
		note(t, i, DEMO_EVENT_WOKE, since_start_ns(t), 0);
		break;
	case DEMO_TOUCH:
	case DEMO_ALLOC:
	case DEMO_POOL:
		use_memory(t, i, s);
		break;
	case DEMO_LOOP:
	case DEMO_NEXT:
		break;
	}
}

/* A stopped thread takes no step but to give back what it has locked. */
static void follow_script(struct demo_thread *t)
{
	unsigned int loop = 0;
	int64_t left = 0;

	for (unsigned int i = 0; i < t->script.steps; i++) {
		const struct demo_step *s = &t->script.step[i];

		if (s->op == DEMO_LOOP) {
			loop = i;
			left = s->arg;
		}
		if (!stopped(t) || s->op == DEMO_UNLOCK || s->op == DEMO_LOCK)
			take_step(t, i);
		if (s->op == DEMO_NEXT && --left > 0 && !stopped(t))
			i = loop;
	}
	note(t, t->script.steps, DEMO_EVENT_DONE, since_start_ns(t), stopped(t));
}

static int fail(struct demo_thread *t, const char *at, int err)
{
	t->failed_at = at;
	t->failure = -err;
	return err;
}

/* The kernel lets no SCHED_DEADLINE thread be pinned: one that does not stay may go to
 * all CPUs again, and the kernel leaves it here as long as no other deadline thread is. */
static int go_to_cpu(const struct demo_stage *stage, bool stay)
{
	struct cpulist one = { 0 };
	int err;

	cpulist_add(&one, (unsigned int)stage->cpu);
	err = cpulist_set_affinity(&one);
	return err || stay ? err : cpulist_set_affinity(&stage->cpus);
}

static int set_up(struct demo_thread *t)
{
	const struct policy *want = &t->script.policy;
	struct timespec slice = { 0 };
	int err;

	t->tid = (int)syscall(SYS_gettid);
	err = go_to_cpu(t->stage, want->kind != POLICY_DEADLINE);
	if (err)
		return fail(t, "pin a thread to the CPU", err);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	err = policy_set(want);
	if (err) {
		policy_explain(want, -err, &t->refusal);
		return fail(t, "set the scheduling policy", err);
	}
	err = policy_get(&t->got);
	if (!err)
		err = cpulist_get_affinity(&t->affinity);
	if (err)
		return fail(t, "read back the scheduling", err);
	if (t->got.kind != want->kind || t->got.priority != want->priority)
		return fail(t, "get the scheduling policy that was set", -EIO);
	if (want->kind == POLICY_RR && sched_rr_get_interval(0, &slice) == 0)
		t->slice_ns = timespec_ns(slice);
	return 0;
}

static void take_part(struct demo_thread *t)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct usage before;
	sigset_t none;

	prctl(PR_SET_NAME, t->script.name, 0, 0, 0);
	sigfillset(&none); /* signals are the watchdog's */
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	if (set_up(t)) {
		/* release: pairs with the acquire of the state in demo.c */
		atomic_store_explicit(&t->state, DEMO_FAILED, memory_order_release);
		return;
	}
	cpu_time_ns();
	atomic_store_explicit(&t->state, DEMO_READY, memory_order_release);
	/* acquire: pairs with the release of go in demo.c; start_ns is there */
	while (!atomic_load_explicit(&t->stage->go, memory_order_acquire)) {
		if (stopped(t))
			return;
		nanosleep(&pause, NULL);
	}
	before = usage_now();
	follow_script(t);
	t->usage = usage_since(&before);
	/* release: pairs with the acquire of done in demo.c */
	atomic_store_explicit(&t->done, true, memory_order_release);
}

static void *run(void *arg)
{
	struct demo_thread *t = arg;

	take_part(t);
	/* release: pairs with the acquire of ended in demo.c */
	atomic_store_explicit(&t->ended, true, memory_order_release);
	return NULL;
}

static size_t block_bytes(unsigned int n)
{
	return n * (sizeof(struct demo_thread) + DEMO_STACK_BYTES);
}

/* Stacks first, so that each starts on a page. */
struct demo_thread *demothread_alloc(unsigned int n)
{
	char *block = mmap(NULL, block_bytes(n), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		return NULL;
	memset(block, 0, block_bytes(n));
	return (struct demo_thread *)(block + (size_t)n * DEMO_STACK_BYTES);
}

void demothread_free(struct demo_thread *all, unsigned int n)
{
	munmap((char *)all - (size_t)n * DEMO_STACK_BYTES, block_bytes(n));
}

static int fill_pool(struct demo_thread *t)
{
	for (unsigned int i = 0; i < t->script.steps; i++)
		if (t->script.step[i].op == DEMO_POOL &&
		    t->script.step[i].arg > t->pool_bytes)
			t->pool_bytes = t->script.step[i].arg;
	if (!t->pool_bytes)
		return 0;
	t->pool = mmap(NULL, (size_t)t->pool_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->pool == MAP_FAILED)
		return -errno;
	touch(t->pool, t->pool_bytes);
	return 0;
}

int demothread_start(struct demo_thread *all, unsigned int i, unsigned int n)
{
	char *stacks = (char *)all - (size_t)n * DEMO_STACK_BYTES;
	pthread_attr_t attr;
	int err = fill_pool(&all[i]);

	if (err)
		return err;
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stacks + (size_t)i * DEMO_STACK_BYTES,
			      DEMO_STACK_BYTES);
	err = pthread_create(&all[i].thread, &attr, run, &all[i]);
	pthread_attr_destroy(&attr);
	return -err;
}
