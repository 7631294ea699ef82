/* SPDX-License-Identifier: MIT */
#include "measure/sampler.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SAMPLER_STACK_BYTES
#define SAMPLER_STACK_BYTES (64 * 1024) /* sanitizers need more */
#endif

/* After the last period of all: later than that, a quiescing thread is not to blame. */
#define QUIESCE_NS INT64_C(20000000)

bool sampler_read_record(struct sampler *s, uint32_t *version, struct wakeup *out)
{
	struct progress *p = &s->progress;
	uint32_t before, after;

	do {
		/* acquire: pairs with the release of the even version */
		before = atomic_load_explicit(&p->record_version, memory_order_acquire);
		if (before == *version)
			return false;
		/* acquire: pairs with the release of each field */
		out->seq = atomic_load_explicit(&p->record_seq, memory_order_acquire);
		out->expiry_ns = atomic_load_explicit(&p->record_expiry_ns,
						      memory_order_acquire);
		out->wake_ns =
			atomic_load_explicit(&p->record_wake_ns, memory_order_acquire);
		after = relaxed(p->record_version);
	} while (before != after || before & 1);

	*version = before;
	return true;
}

static void __attribute__((noinline)) note_rare(struct sampler *s, int64_t expiry_ns,
						int64_t wake_ns)
{
	const struct wakeup w = {
		.seq = (uint64_t)((expiry_ns - s->start_ns) / s->interval_ns),
		.expiry_ns = expiry_ns,
		.wake_ns = wake_ns,
	};

	take_rare(s, &w);
}

static int64_t __attribute__((noinline)) periods(const struct sampler *s,
						 int64_t from_ns, int64_t to_ns)
{
	return (to_ns - from_ns) / s->interval_ns;
}

/* With a constant: an ordinary run has not even the question in its loop. */
static inline __attribute__((always_inline)) void sample(struct sampler *s,
							 const bool keeps)
{
	const int64_t interval_ns = s->interval_ns;
	int64_t *const kept = keeps ? s->samples->latency_ns : NULL;
	int64_t at = 0;
	int64_t expiry_ns = s->start_ns + interval_ns;
	struct timespec expiry = ns_timespec(expiry_ns);

	while (expiry_ns <= s->end_ns) {
		int64_t wake_ns, latency_ns, next_ns;
		int err = clock_sleep_until(&expiry);

		if (__builtin_expect(err, 0)) {
			if (err != EINTR || relaxed(*s->stop))
				break;
			s->interrupted_sleeps++;
			continue;
		}

		wake_ns = clock_now_ns();
		latency_ns = wake_ns - expiry_ns;

		if (__builtin_expect(take_is_rare(s, latency_ns), 0))
			note_rare(s, expiry_ns, wake_ns);
		else
			take_usual(s, latency_ns);
		if (keeps)
			kept[at++] = latency_ns;

		next_ns = expiry_ns + interval_ns;
		if (__builtin_expect(next_ns <= wake_ns, 0)) {
			next_ns = take_missed(s, next_ns, wake_ns);
			if (keeps)
				at += periods(s, expiry_ns, next_ns) - 1;
		}

		take_advance(&expiry, next_ns - expiry_ns);
		expiry_ns = next_ns;
		if (__builtin_expect(relaxed(*s->stop), 0))
			break;
	}
	s->end_ns = expiry_ns - interval_ns;
}

static void __attribute__((noinline)) sample_until_end(struct sampler *s)
{
	sample(s, false);
}

static void __attribute__((noinline)) sample_and_keep(struct sampler *s)
{
	sample(s, true);
}

/* Keeps still while the others wake for the last time: what a thread does when it ends
 * would make them late. */
static void quiesce(const struct sampler *s, int64_t end_ns)
{
	const struct timespec until = ns_timespec(end_ns + QUIESCE_NS);

	if (!relaxed(*s->stop))
		clock_sleep_until(&until);
}

static int fail(struct sampler *s, const char *at, int err)
{
	s->failed_at = at;
	s->failure = -err;
	return err;
}

static int read_back(struct sampler *s)
{
	int err = policy_get(&s->got_policy);

	if (err)
		return fail(s, "read back the scheduling policy", err);
	err = cpulist_get_affinity(&s->got_affinity);
	if (err)
		return fail(s, "read back the affinity", err);
	s->got_timer_slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	return 0;
}

static int set_up(struct sampler *s)
{
	int err;

	s->tid = (int)syscall(SYS_gettid);
	if (s->cpu >= 0) {
		struct cpulist one = { 0 };

		cpulist_add(&one, (unsigned int)s->cpu);
		err = cpulist_set_affinity(&one);
		if (err)
			return fail(s, "pin to the CPU", err);
	}

	/* Policy before the first timer: on PREEMPT_RT a timer armed by an ordinary thread
	 * expires in a softirq thread, milliseconds late under load. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	err = policy_set(&s->policy);
	if (err) {
		policy_explain(&s->policy, -err, &s->refusal);
		return fail(s, "set the scheduling policy", err);
	}
	err = clock_sleep_until(&(struct timespec){ .tv_sec = 0 });
	if (err)
		return fail(s,
			    "sleep to an absolute time (64-bit time needs Linux 5.1)",
			    -err);
	err = read_back(s);
	if (err)
		return err;
	if (s->got_policy.kind != s->policy.kind ||
	    s->got_policy.priority != s->policy.priority)
		return fail(s, "get the scheduling policy that was set", -EIO);
	return 0;
}

static void *run(void *arg)
{
	struct sampler *s = arg;
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct usage before;
	int64_t end_ns;
	sigset_t wake_only;
	char name[16];

	snprintf(name, sizeof(name), "%.10s%s/%d", s->name, s->is_stimulus ? "-ev" : "",
		 s->cpu);
	prctl(PR_SET_NAME, name, 0, 0, 0);

	/* Signals are the supervisor's; SIGUSR1 alone may end a sleep here. */
	sigfillset(&wake_only);
	sigdelset(&wake_only, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &wake_only, NULL);

	if (set_up(s)) {
		/* release: pairs with the acquire in sampler_wait_ready() */
		atomic_store_explicit(&s->step, SAMPLER_FAILED, memory_order_release);
		return NULL;
	}

	clock_take_reads(&s->reads_before);
	hist_init(&s->hist); /* touches every page of it */
	atomic_store_explicit(&s->step, SAMPLER_READY, memory_order_release);

	/* acquire: pairs with the supervisor's release; start_ns and end_ns are there */
	while (!atomic_load_explicit(&s->go, memory_order_acquire)) {
		if (relaxed(*s->stop))
			return NULL;
		nanosleep(&pause, NULL);
	}

	end_ns = s->end_ns;
	before = usage_now();
	if (s->loop)
		s->loop(s);
	else if (s->samples)
		sample_and_keep(s);
	else
		sample_until_end(s);
	s->usage = usage_since(&before);
	quiesce(s, end_ns);

	clock_take_reads(&s->reads_after);
	read_back(s);
	/* release: pairs with the supervisor's acquire before it joins */
	atomic_store_explicit(&s->progress.done, true, memory_order_release);
	return NULL;
}

static size_t block_bytes(unsigned int n)
{
	return n * (sizeof(struct sampler) + SAMPLER_STACK_BYTES);
}

/* Stacks first, so that each starts on a page: SAMPLER_STACK_BYTES is whole pages. */
struct sampler *sampler_alloc(unsigned int n)
{
	char *block = mmap(NULL, block_bytes(n), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (block == MAP_FAILED)
		return NULL;
	memset(block, 0, block_bytes(n));
	return (struct sampler *)(block + (size_t)n * SAMPLER_STACK_BYTES);
}

void sampler_free(struct sampler *s, unsigned int n)
{
	munmap((char *)s - (size_t)n * SAMPLER_STACK_BYTES, block_bytes(n));
}

int sampler_start(struct sampler *all, unsigned int i, unsigned int n)
{
	char *stacks = (char *)all - (size_t)n * SAMPLER_STACK_BYTES;
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stacks + (size_t)i * SAMPLER_STACK_BYTES,
			      SAMPLER_STACK_BYTES);
	err = pthread_create(&all[i].thread, &attr, run, &all[i]);
	pthread_attr_destroy(&attr);
	return -err;
}

enum sampler_step sampler_wait_ready(struct sampler *s, int64_t until_ns)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int step;

	/* acquire: pairs with the release of the thread's step */
	while ((step = atomic_load_explicit(&s->step, memory_order_acquire)) ==
		       SAMPLER_STARTING &&
	       clock_now_ns() < until_ns)
		nanosleep(&pause, NULL);
	if (step == SAMPLER_READY)
		clock_cost_of(&s->reads_before, &s->clock_before);
	return (enum sampler_step)step;
}

void sampler_join(struct sampler *s)
{
	pthread_join(s->thread, NULL);
	if (relaxed(s->progress.done)) /* else it was stopped before it had begun */
		clock_cost_of(&s->reads_after, &s->clock_after);
}

void sampler_wake(struct sampler *s)
{
	pthread_kill(s->thread, SIGUSR1);
}
