/* SPDX-License-Identifier: MIT */
#include "measure/result.h"

#include <sys/utsname.h>

#include "host/version.h"
#include "measure/growth.h"
#include "measure/histline.h"
#include "measure/timerlat.h"
#include "trace/tracereport.h"
#include "trace/wakeupline.h"

#define TICK_PATIENCE_MS 200

static void emit_list(struct emit *e, const char *key, const struct cpulist *set)
{
	char text[CPULIST_TEXT_MAX];

	cpulist_format(set, text, sizeof(text));
	emit_text(e, key, text);
}

static void emit_options(const struct options *o, struct emit *e)
{
	emit_open(e, "options", '{');
	emit_list(e, "cpus", &o->cpus);
	emit_text(e, "policy", policy_name(o->policy.kind));
	emit_int(e, "priority", o->policy.priority);
	emit_int(e, "runtime_ns", (int64_t)o->policy.runtime_ns);
	emit_int(e, "interval_ns", o->interval_ns);
	emit_int(e, "duration_ns", o->duration_ns);
	emit_int(e, "phase_ns", o->phase_ns);
	if (!event_is_timer(&o->event))
		emit_text(e, "event", o->event_text);
	emit_int(e, "worst", o->worst);
	emit_bool(e, "hold_cpu_awake", o->hold_cpu_awake);
	emit_bool(e, "trace", o->trace);
	if (o->growth)
		emit_bool(e, "growth", true);
	if (o->keep_samples)
		emit_bool(e, "keep_samples", true);
	emit_bool(e, "heartbeat", o->link.heartbeat);
	emit_open(e, "set", '{');
	for (unsigned int i = 0; i < o->knobs; i++)
		emit_text(e, o->knob[i].name, o->knob[i].value);
	emit_close(e, '}');
	emit_close(e, '}');
}

void result_emit_hello(const struct run *run, struct emit *out)
{
	struct utsname name;

	uname(&name);
	emit_begin(out, "hello");
	emit_int(out, "schema", CONTRACT_SCHEMA);
	emit_text(out, "agent", AGENT_VERSION);
	emit_text(out, "arch", name.machine);
	emit_options(run->options, out);
	emit_open(out, "restored", '[');
	for (unsigned int i = 0; i < run->restored_count; i++)
		emit_text(out, NULL, run->restored[i]);
	emit_close(out, ']');
	emit_end(out);
}

static void emit_records(struct run *run, struct emit *out)
{
	struct wakeup w;

	for (unsigned int i = 0; i < run->count; i++) {
		if (!sampler_read_record(&run->sampler[i], &run->record_version[i], &w))
			continue;
		emit_begin(out, "worst");
		emit_open(out, "wakeup", '{');
		wakeupline_emit(out, run->sampler[i].cpu, &w);
		emit_close(out, '}');
		emit_end(out);
	}
}

void result_emit_tick(struct run *run, struct emit *out, int64_t t_ns)
{
	/* before anything is written: the supervisor must not get stuck on its own lines */
	if (!emit_ready(out, TICK_PATIENCE_MS)) {
		run->ticks_lost++; /* the next tick's maximum covers this second too */
		return;
	}
	klog_drain(&run->klog, out);
	emit_records(run, out);
	for (unsigned int i = 0; i < run->count; i++)
		run->tick_max_ns[i] = take_window_max(&run->sampler[i].progress);
	if (run->growth)
		growth_emit(run->growth, run->sampler, run->tick_max_ns, run->count,
			    out);
	emit_begin(out, "tick");
	emit_int(out, "t_ns", t_ns);
	emit_open(out, "cpus", '[');
	for (unsigned int i = 0; i < run->count; i++) {
		struct progress *p = &run->sampler[i].progress;

		emit_open(out, NULL, '{');
		wakeupline_emit_cpu(out, run->sampler[i].cpu);
		emit_int(out, "samples",
			 (int64_t)atomic_load_explicit(&p->samples,
						       memory_order_relaxed));
		emit_int(out, "missed_periods",
			 (int64_t)atomic_load_explicit(&p->missed_periods,
						       memory_order_relaxed));
		emit_int(out, "max_ns", run->tick_max_ns[i]);
		emit_close(out, '}');
	}
	emit_close(out, ']');
	sensors_emit(&run->sensors, out);
	if (run->growth)
		meters_emit(&run->meters, out);
	emit_end(out);
}

static void emit_cost(struct emit *e, const char *key, const struct clock_cost *c)
{
	emit_open(e, key, '{');
	emit_int(e, "reads", c->reads);
	emit_int(e, "min_ns", c->min_ns);
	emit_int(e, "p50_ns", c->p50_ns);
	emit_int(e, "p999_ns", c->p999_ns);
	emit_int(e, "max_ns", c->max_ns);
	emit_int(e, "granularity_ns", c->granularity_ns);
	emit_close(e, '}');
}

static void emit_hist(struct emit *e, const struct hist *h)
{
	bool none = h->max_ns < h->min_ns;

	emit_int(e, "early", (int64_t)hist_peek(&h->early));
	emit_int(e, "overflow", (int64_t)hist_peek(&h->overflow));
	if (none) {
		emit_null(e, "min_ns");
		emit_null(e, "max_ns");
	} else {
		emit_int(e, "min_ns", h->min_ns);
		emit_int(e, "max_ns", h->max_ns);
	}
	emit_wide(e, "sum_ns", &h->sum_ns);
	emit_wide(e, "sum_sq_ns2", &h->sum_sq_ns2);
	emit_open(e, "histogram", '[');
	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		histline_emit_bucket(e, i, hist_peek(&h->count[i]));
	emit_close(e, ']');
}

static void emit_usage(struct emit *e, const struct usage *u)
{
	emit_int(e, "minor_faults", u->minor_faults);
	emit_int(e, "major_faults", u->major_faults);
	emit_int(e, "voluntary_switches", u->voluntary_switches);
	emit_int(e, "involuntary_switches", u->involuntary_switches);
	if (u->migrations < 0)
		emit_null(e, "migrations");
	else
		emit_int(e, "migrations", u->migrations);
	emit_int(e, "cpu_time_ns", u->cpu_time_ns);
}

static void emit_set_up(struct emit *e, const struct sampler *s)
{
	wakeupline_emit_cpu(e, s->cpu);
	emit_int(e, "tid", s->tid);
	emit_text(e, "policy", policy_name(s->got_policy.kind));
	emit_int(e, "priority", s->got_policy.priority);
	emit_list(e, "affinity", &s->got_affinity);
	emit_int(e, "timer_slack_ns", s->got_timer_slack_ns);
	emit_int(e, "interval_ns", s->interval_ns);
	emit_int(e, "start_ns", s->start_ns);
}

/* The thread that wakes it, and after the run what became of the events. */
static void emit_event(struct emit *e, const struct run *run, unsigned int i)
{
	const struct sampler *stimulus = &run->sampler[run->count + i];
	const struct eventway *w = &run->way[i];

	emit_open(e, "event", '{');
	emit_text(e, "name", w->kind->name);
	emit_int(e, "stimulus_cpu", stimulus->cpu);
	emit_int(e, "stimulus_tid", stimulus->tid);
	emit_text(e, "stimulus_policy", policy_name(stimulus->got_policy.kind));
	emit_int(e, "stimulus_priority", stimulus->got_policy.priority);
	emit_int(e, "sent", (int64_t)w->sent);
	emit_int(e, "unsent", (int64_t)w->unsent);
	emit_int(e, "stimulus_late_ns", w->stimulus_late_ns);
	emit_int(e, "lost", (int64_t)w->lost);
	emit_int(e, "full", (int64_t)w->full);
	emit_int(e, "stuck_ns", w->stuck_ns);
	emit_int(e, "silent_ns", w->silent_ns);
	emit_int(e, "doubled", (int64_t)w->doubled);
	emit_int(e, "reordered", (int64_t)w->reordered);
	emit_close(e, '}');
}

/* What the tracer looked for, and the periods in which it reported nothing. */
static void emit_hwlat(struct emit *e, const struct run *run, unsigned int i)
{
	const struct options *o = run->options;

	emit_open(e, "hwlat", '{');
	emit_int(e, "threshold_ns", o->event.hwlat.threshold_us * 1000);
	emit_int(e, "width_ns", o->event.hwlat.width_us * 1000);
	emit_int(e, "silent", (int64_t)run->sampler[i].silent);
	emit_close(e, '}');
}

/* The two parts of the latencies of the tracer timerlat, in their order. */
static void emit_timerlat(struct emit *e, const struct timerlat *t)
{
	const struct hist *parts[] = { &t->before, &t->thread };

	emit_open(e, "timerlat", '[');
	for (unsigned int i = 0; i < 2; i++) {
		emit_open(e, NULL, '{');
		emit_hist(e, parts[i]);
		emit_close(e, '}');
	}
	emit_close(e, ']');
}

static void emit_thread(struct emit *e, const struct run *run, unsigned int i)
{
	const struct sampler *s = &run->sampler[i];

	emit_open(e, NULL, '{');
	emit_set_up(e, s);
	emit_int(e, "end_ns", s->end_ns);
	emit_int(e, "samples", (int64_t)s->progress.samples);
	emit_int(e, "missed_periods", (int64_t)s->progress.missed_periods);
	emit_int(e, "overruns", (int64_t)s->overruns);
	emit_int(e, "interrupted_sleeps", (int64_t)s->interrupted_sleeps);
	emit_wide(e, "missed_periods_sum_ns", &s->missed_periods_sum_ns);
	emit_hist(e, &s->hist);
	emit_open(e, "worst", '[');
	for (unsigned int k = 0; k < s->worst.count; k++) {
		emit_open(e, NULL, '{');
		wakeupline_emit(e, s->cpu, &s->worst.entry[k]);
		emit_close(e, '}');
	}
	emit_close(e, ']');
	emit_usage(e, &s->usage);
	emit_cost(e, "clock_before", &s->clock_before);
	emit_cost(e, "clock_after", &s->clock_after);
	if (run->way)
		emit_event(e, run, i);
	if (run->options->event.hwlat.asked)
		emit_hwlat(e, run, i);
	if (run->timerlat)
		emit_timerlat(e, &run->timerlat[i]);
	emit_close(e, '}');
}

static void emit_machine(struct run *run, struct emit *e)
{
	emit_open(e, "machine", '{');
	counters_emit_delta(e, "interrupts", &run->before.interrupts,
			    &run->after.interrupts);
	counters_emit_delta(e, "softirqs", &run->before.softirqs, &run->after.softirqs);
	counters_emit_cpu_times(e, &run->before.stat, &run->after.stat);
	kthreads_emit_delta(e, &run->before.kthreads, &run->after.kthreads);
	sensors_emit_counters(&run->sensors, e);
	emit_int(e, "realtime_step_ns", run->clocks.realtime_step_ns);
	emit_int(e, "suspended_ns", run->clocks.suspended_ns);
	emit_close(e, '}');
}

static int64_t last_end_ns(const struct run *run)
{
	int64_t end_ns = run->start_ns;

	for (unsigned int i = 0; i < run->count; i++)
		if (run->sampler[i].end_ns > end_ns)
			end_ns = run->sampler[i].end_ns;
	return end_ns;
}

static void emit_conditions(const struct run *run, struct emit *out)
{
	emit_int(out, "locked_kb", run->locked_kb);
	if (run->dma_latency.us < 0)
		emit_null(out, "dma_latency_us");
	else
		emit_int(out, "dma_latency_us", run->dma_latency.us);
	emit_bool(out, "dma_latency_held", run->dma_latency.held);
	if (cpulist_count(&run->housekeeping))
		emit_int(out, "housekeeping_cpu", cpulist_next(&run->housekeeping, 0));
	else
		emit_null(out, "housekeeping_cpu");
	emit_text(out, "kernel_log", run->klog.state);
}

void result_emit_started(const struct run *run, struct emit *out)
{
	emit_begin(out, "started");
	emit_int(out, "start_ns", run->start_ns);
	emit_conditions(run, out);
	emit_open(out, "threads", '[');
	for (unsigned int i = 0; i < run->count; i++) {
		emit_open(out, NULL, '{');
		emit_set_up(out, &run->sampler[i]);
		emit_cost(out, "clock_before", &run->sampler[i].clock_before);
		if (run->way)
			emit_event(out, run, i);
		emit_close(out, '}');
	}
	emit_close(out, ']');
	emit_end(out);
}

/* Up to the last period of each: a run may have been stopped. */
static void emit_samples(const struct run *run, struct emit *out)
{
	for (unsigned int i = 0; run->samples && i < run->count; i++) {
		const struct sampler *s = &run->sampler[i];

		samples_emit(&run->samples[i], s->cpu,
			     (uint32_t)((s->end_ns - s->start_ns) / s->interval_ns),
			     out);
	}
}

int result_emit(struct run *run, struct emit *out)
{
	const char *ended_by = hostlink_word(run->ended_by);

	klog_drain(&run->klog, out); /* what a lost last tick has left */
	if (run->options->trace)
		tracereport_emit_trace(&run->tracer, out);
	emit_samples(run, out);
	emit_begin(out, "result");
	emit_int(out, "start_ns", run->start_ns);
	emit_int(out, "end_ns", last_end_ns(run));
	if (ended_by)
		emit_text(out, "stopped", ended_by);
	else
		emit_null(out, "stopped");
	emit_conditions(run, out);
	emit_int(out, "kernel_log_lost", run->klog.lost);
	emit_int(out, "ticks_lost", run->ticks_lost);
	emit_open(out, "threads", '[');
	for (unsigned int i = 0; i < run->count; i++)
		emit_thread(out, run, i);
	emit_close(out, ']');
	emit_machine(run, out);
	if (run->options->trace)
		tracereport_emit_summary(&run->tracer, &run->counterdeltas, out);
	return emit_end(out);
}
