/* SPDX-License-Identifier: MIT */
#include "measure/samplers.h"

#include <stdio.h>
#include <string.h>

#include "host/hostlink.h"
#include "measure/hwlat.h"
#include "measure/poller.h"
#include "measure/reports.h"
#include "measure/result.h"
#include "measure/timerlat.h"

#define START_DELAY_NS (20 * INT64_C(1000000)) /* for all threads to be asleep */
#define LOST_AFTER_NS  NS_PER_S /* an event that has not come by then never comes */
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
	snprintf(message, sizeof(message), "cannot set SCHED_%s %u on %s: %s%s%s",
		 policy_name(s->policy.kind), s->policy.priority, where,
		 strerror(s->failure), *s->refusal.why ? ": " : "", s->refusal.why);
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

/* The CPU of the stimulus of a thread on cpu. -1 if there is no other. */
static int stimulus_cpu(const struct run *run, int cpu)
{
	const int asked = run->options->event.cpu;
	int other;

	if (asked == EVENT_CPU_SAME)
		return cpu;
	if (asked != EVENT_CPU_OTHER)
		return asked;
	other = cpulist_next(&run->usable, (unsigned int)cpu + 1);
	if (other < 0)
		other = cpulist_next(&run->usable, 0);
	return other == cpu ? -1 : other;
}

/* A stimulus is to be preempted by the thread that it wakes, where both share a CPU. */
static void set_stimulus(const struct run *run, struct sampler *s, unsigned int i)
{
	const struct options *o = run->options;

	s->is_stimulus = true;
	s->cpu = stimulus_cpu(run, run->sampler[i].cpu);
	s->policy = o->policy;
	if (o->event.priority)
		s->policy = (struct policy){ .kind = POLICY_FIFO,
					     .priority = o->event.priority };
	else if (o->policy.priority > 1)
		s->policy.priority--;
	s->loop = eventway_send_until_end;
	s->way = &run->way[i];
	worst_init(&s->worst, 0);
}

static void set_receiver(struct run *run, struct sampler *s, unsigned int i, int cpu)
{
	const struct options *o = run->options;

	s->cpu = o->policy.kind == POLICY_DEADLINE ? -1 : cpu;
	s->policy = o->policy;
	s->candidates = run->candidates ? &run->candidates[i] : NULL;
	if (s->candidates)
		s->candidates->cpu = s->cpu;
	s->samples = run->samples ? &run->samples[i] : NULL;
	if (o->event.polls)
		s->loop = poller_until_end;
	if (o->event.hwlat.asked) {
		s->loop = hwlat_until_end;
		s->reports_fd = run->reports_fd[i];
	}
	if (run->timerlat) {
		s->loop = timerlat_until_end;
		s->reports_fd = run->reports_fd[i];
		s->timerlat = &run->timerlat[i];
	}
	if (run->way) {
		s->loop = eventway_receive_until_end;
		s->way = &run->way[i];
	}
	worst_init(&s->worst, o->worst);
}

static enum exit_status start_one(struct run *run, struct emit *out, unsigned int i)
{
	struct sampler *s = &run->sampler[i];

	s->interval_ns = run->options->interval_ns;
	s->name = run->options->name;
	s->stop = &run->stop;
	if (sampler_start(run->sampler, i, run->threads))
		return emit_error(out, "other", "cannot start a thread",
				  "look at RLIMIT_NPROC, RLIMIT_MEMLOCK and the "
				  "pids cgroup");
	run->started++;
	return EXIT_DONE;
}

static enum exit_status wait_until_ready(struct run *run, struct emit *out)
{
	int64_t until_ns = clock_now_ns() + STARVED_AFTER_NS;

	for (unsigned int i = 0; i < run->threads; i++) {
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

enum exit_status samplers_start(struct run *run, struct emit *out)
{
	enum exit_status status = EXIT_DONE;
	int cpu = -1;

	for (unsigned int i = 0; i < run->threads && !status; i++) {
		struct sampler *s = &run->sampler[i];

		if (i < run->count) {
			cpu = cpulist_next(&run->options->cpus,
					   (unsigned int)(cpu + 1));
			set_receiver(run, s, i, cpu);
		} else {
			set_stimulus(run, s, i - run->count);
		}
		status = start_one(run, out, i);
	}
	return status ? status : wait_until_ready(run, out);
}

/* Phases are spread over the interval, so that the threads do not wake in step. */
void samplers_release(struct run *run)
{
	const struct options *o = run->options;

	run->start_ns = clock_now_ns() + START_DELAY_NS + o->phase_ns;
	run->end_ns = run->start_ns;
	/* stimuli last: what they need of their receivers is there */
	for (unsigned int i = 0; i < run->threads; i++) {
		struct sampler *s = &run->sampler[i];

		if (s->is_stimulus)
			s->way->ends.receiver = run->sampler[i - run->count].tid;
		s->start_ns =
			run->start_ns + o->interval_ns * (i % run->count) / run->count;
		s->end_ns =
			s->start_ns + o->duration_ns / o->interval_ns * o->interval_ns;
		if (s->end_ns > run->end_ns)
			run->end_ns = s->end_ns;
		/* release: pairs with the thread's acquire of go */
		atomic_store_explicit(&s->go, true, memory_order_release);
	}
}

static bool done(const struct run *run, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++)
		/* acquire: pairs with the thread's release of done */
		if (!atomic_load_explicit(&run->sampler[i].progress.done,
					  memory_order_acquire))
			return false;
	return true;
}

static bool way_failed(const struct run *run)
{
	const char *what;

	for (unsigned int i = 0; run->way && i < run->count; i++)
		if (eventway_failure(&run->way[i], &what))
			return true;
	return false;
}

static void end_waits(struct run *run, bool lost)
{
	for (unsigned int i = 0; run->way && i < run->count && i < run->started; i++)
		eventway_end_wait(&run->way[i], &run->sampler[i], lost);
}

/* Again and again until all are done: a signal may come just before the sleep. */
void samplers_stop(struct run *run)
{
	atomic_store_explicit(&run->stop, true, memory_order_relaxed);
	for (unsigned int i = 0; i < run->started; i++)
		sampler_wake(&run->sampler[i]);
	end_waits(run, false);
}

void samplers_join(struct run *run)
{
	for (unsigned int i = 0; i < run->started; i++)
		sampler_join(&run->sampler[i]);
	for (unsigned int i = 0; run->way && i < run->count; i++)
		eventway_settle(&run->way[i], &run->sampler[i],
				&run->sampler[run->count + i]);
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
		if (run->ended_by != HOSTLINK_UP || way_failed(run) ||
		    reports_changed(run))
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

	for (int64_t waited_ns = 0; !done(run, 0, run->threads);
	     waited_ns += pause.tv_nsec) {
		if (waited_ns > STARVED_AFTER_NS)
			return false;
		if (waited_ns > LOST_AFTER_NS && done(run, run->count, run->threads))
			end_waits(run, true);
		if (run->ended_by == HOSTLINK_UP)
			run->ended_by =
				hostlink_check(&run->options->link, clock_now_ns());
		if (run->ended_by != HOSTLINK_UP || way_failed(run) || run->changed)
			samplers_stop(run);
		nanosleep(&pause, NULL);
	}
	return true;
}
