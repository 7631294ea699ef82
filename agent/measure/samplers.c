/* SPDX-License-Identifier: MIT */
#include "measure/samplers.h"

#include <stdio.h>
#include <string.h>

#include "host/hostlink.h"
#include "measure/result.h"

#define START_DELAY_NS (20 * INT64_C(1000000)) /* for all threads to be asleep */
#define STARVED_AFTER_NS                                                               \
	(15 * INT64_C(1000000000)) /* no thread is that late and alive */

static enum exit_status report_refused_thread(struct run *run, struct emit *out,
					      const struct sampler *s)
{
	char message[2 * OPTIONS_TEXT], where[24];

	if (s->cpu < 0)
		snprintf(where, sizeof(where), "any CPU");
	else
		snprintf(where, sizeof(where), "CPU %d", s->cpu);
	if (!s->refusal.cause) {
		snprintf(message, sizeof(message), "cannot %s on %s: %s", s->failed_at,
			 where, strerror(s->failure));
		return emit_error(out, "other", message, "");
	}
	snprintf(message, sizeof(message), "cannot set SCHED_%s %u on %s: %s: %s",
		 policy_name(s->policy.kind), s->policy.priority, where,
		 strerror(s->failure), s->refusal.why);
	for (char *c = message + strlen("cannot set SCHED_"); *c && *c != ' '; c++)
		*c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	snprintf(run->text, sizeof(run->text), "%s", s->refusal.remedy);
	return emit_error(out, s->refusal.cause, message, run->text);
}

/* Its threads are not joined: they may never run. */
enum exit_status samplers_starved(struct run *run, struct emit *out)
{
	run->starved = true;
	return emit_error(out, "starved", "a measuring thread did not run for 15 s",
			  "something with a higher priority has its CPU: find it with "
			  "ps -eLo tid,cls,rtprio,psr,pcpu,comm");
}

enum exit_status samplers_start(struct run *run, struct emit *out)
{
	const struct options *o = run->options;
	int64_t until_ns;
	int cpu = -1;

	for (unsigned int i = 0; i < run->count; i++) {
		struct sampler *s = &run->sampler[i];

		cpu = cpulist_next(&o->cpus, (unsigned int)(cpu + 1));
		s->cpu = o->policy.kind == POLICY_DEADLINE ? -1 : cpu;
		s->policy = o->policy;
		s->interval_ns = o->interval_ns;
		s->stop = &run->stop;
		s->candidates = run->candidates ? &run->candidates[i] : NULL;
		if (s->candidates)
			s->candidates->cpu = s->cpu;
		worst_init(&s->worst, o->worst);
		if (sampler_start(run->sampler, i, run->count))
			return emit_error(
				out, "other", "cannot start a thread",
				"look at RLIMIT_NPROC, RLIMIT_MEMLOCK and the "
				"pids cgroup");
		run->started++;
	}
	until_ns = clock_now_ns() + STARVED_AFTER_NS;
	for (unsigned int i = 0; i < run->count; i++) {
		switch (sampler_wait_ready(&run->sampler[i], until_ns)) {
		case SAMPLER_READY:
			break;
		case SAMPLER_FAILED:
			return report_refused_thread(run, out, &run->sampler[i]);
		case SAMPLER_STARTING:
			return samplers_starved(run, out);
		}
	}
	return EXIT_DONE;
}

/* Phases are spread over the interval, so that the threads do not wake in step. */
void samplers_release(struct run *run)
{
	const struct options *o = run->options;

	run->start_ns = clock_now_ns() + START_DELAY_NS + o->phase_ns;
	run->end_ns = run->start_ns;
	for (unsigned int i = 0; i < run->count; i++) {
		struct sampler *s = &run->sampler[i];

		s->start_ns = run->start_ns + o->interval_ns * i / run->count;
		s->end_ns =
			s->start_ns + o->duration_ns / o->interval_ns * o->interval_ns;
		if (s->end_ns > run->end_ns)
			run->end_ns = s->end_ns;
		/* release: pairs with the thread's acquire of go */
		atomic_store_explicit(&s->go, true, memory_order_release);
	}
}

static bool all_done(const struct run *run)
{
	for (unsigned int i = 0; i < run->count; i++)
		/* acquire: pairs with the thread's release of done */
		if (!atomic_load_explicit(&run->sampler[i].progress.done,
					  memory_order_acquire))
			return false;
	return true;
}

/* Again and again until all are done: a signal may come just before the sleep. */
void samplers_stop(struct run *run)
{
	atomic_store_explicit(&run->stop, true, memory_order_relaxed);
	for (unsigned int i = 0; i < run->started; i++)
		sampler_wake(&run->sampler[i]);
}

void samplers_join(struct run *run)
{
	for (unsigned int i = 0; i < run->started; i++)
		sampler_join(&run->sampler[i]);
	run->started = 0;
}

/* Sleeps, and wakes once a second (twice with heartbeats) to say how far it is. */
void samplers_watch(struct run *run, struct emit *out)
{
	struct hostlink *link = &run->options->link;
	int64_t next_check_ns = run->start_ns + hostlink_period_ns(link);
	int64_t next_tick_ns = run->start_ns + NS_PER_S;
	int64_t now_ns = run->start_ns;

	while (now_ns < run->end_ns) {
		struct timespec until = ns_timespec(
			next_check_ns < run->end_ns ? next_check_ns : run->end_ns);

		clock_sleep_until(&until);
		now_ns = clock_now_ns();
		run->ended_by = hostlink_check(link, now_ns);
		if (run->ended_by == HOSTLINK_UP && out->error)
			run->ended_by = HOSTLINK_PARENT; /* nobody is left to read */
		if (run->ended_by != HOSTLINK_UP)
			break;
		clock_watch_update(&run->clocks);
		if (now_ns >= next_tick_ns && now_ns < run->end_ns) {
			result_emit_tick(run, out, now_ns - run->start_ns);
			next_tick_ns += NS_PER_S;
		}
		while (next_check_ns <= now_ns)
			next_check_ns += hostlink_period_ns(link);
	}
}

/* False if some have not ended long after they should have. What counts is the time
 * that we have waited, not the clock: we may have been stopped ourselves. */
bool samplers_wait(struct run *run)
{
	const struct timespec pause = { .tv_nsec = 5000000 };

	for (int64_t waited_ns = 0; !all_done(run); waited_ns += pause.tv_nsec) {
		if (waited_ns > STARVED_AFTER_NS)
			return false;
		if (run->ended_by == HOSTLINK_UP)
			run->ended_by =
				hostlink_check(&run->options->link, clock_now_ns());
		if (run->ended_by != HOSTLINK_UP)
			samplers_stop(run);
		nanosleep(&pause, NULL);
	}
	return true;
}
