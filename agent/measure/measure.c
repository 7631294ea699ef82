/* SPDX-License-Identifier: MIT */
#include "measure/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "files/slurp.h"
#include "journal/journal.h"
#include "machine/counters.h"
#include "measure/events.h"
#include "measure/hwlat.h"
#include "measure/klog.h"
#include "measure/kthreads.h"
#include "measure/reports.h"
#include "measure/result.h"
#include "measure/run.h"
#include "measure/sampler.h"
#include "measure/samplers.h"
#include "measure/sensors.h"
#include "measure/timerlat.h"
#include "thread/rights.h"
#include "thread/usage.h"

static enum exit_status choose_cpus(struct run *run, struct emit *out)
{
	struct cpulist usable, reachable, missing;
	char list[CPULIST_TEXT_MAX], message[OPTIONS_TEXT];

	if (cpulist_find_reachable(&usable, &reachable))
		return emit_error(out, "other", "cannot read the CPUs I may use", "");
	if (!run->options->cpus_given)
		run->options->cpus = usable;

	missing = run->options->cpus;
	cpulist_subtract(&missing, &reachable);
	if (cpulist_count(&missing)) {
		cpulist_format(&missing, list, sizeof(list));
		snprintf(message, sizeof(message),
			 "CPU %.100s cannot be measured: offline, not there, or not "
			 "allowed for this process",
			 list);
		cpulist_format(&reachable, list, sizeof(list));
		snprintf(run->text, sizeof(run->text), "choose from --cpus %.200s",
			 list);
		return emit_error(out, "cpu", message, run->text);
	}

	if (!event_is_timer(&run->options->event) && run->options->event.cpu >= 0 &&
	    !cpulist_has(&reachable, (unsigned int)run->options->event.cpu)) {
		snprintf(message, sizeof(message),
			 "CPU %d cannot run the stimulus: offline, not there, or not "
			 "allowed for this process",
			 run->options->event.cpu);
		return emit_error(out, "cpu", message, "write :cpu=other or :cpu=same");
	}
	run->usable = run->housekeeping = usable;
	cpulist_subtract(&run->housekeeping, &run->options->cpus);
	run->count = cpulist_count(&run->options->cpus);
	run->threads = run->options->event.kind ? 2 * run->count : run->count;
	if (run->options->event.polls &&
	    policy_has_priority(run->options->policy.kind) &&
	    !cpulist_count(&run->housekeeping))
		return emit_error(out, "cpu",
				  "poll never sleeps: with a real-time policy on every "
				  "CPU nothing else of this machine would run",
				  "leave a CPU out with --cpus, or choose --policy "
				  "other");
	if (run->options->event.kind && run->options->event.cpu == EVENT_CPU_OTHER &&
	    cpulist_count(&usable) < 2)
		return emit_error(
			out, "cpu",
			"only one CPU may be used, and the stimulus is to run "
			"on another one",
			"write :cpu=same behind the event");
	return EXIT_DONE;
}

static enum exit_status set_knob(struct run *run, struct emit *out,
				 const struct knob_change *change, int index)
{
	const struct knob_place place = { "", change->name, index };
	int err = journal_set_knob(&run->journal, JOURNAL_DIR, &place, change->value);

	if (!err)
		return EXIT_DONE;
	snprintf(run->text, sizeof(run->text), "cannot set %s to %s: %s", change->name,
		 change->value,
		 err == JOURNAL_HELD ? "another running rtscope has changed it"
				     : strerror(-err));
	return emit_error(out, "knob", run->text,
			  err == -EACCES || err == -EPERM
				  ? "changing settings of the machine needs root"
			  : err == -ENOENT ? "this machine has no such setting"
					   : "leave the setting as it is");
}

static enum exit_status set_knobs(struct run *run, struct emit *out)
{
	const struct options *o = run->options;
	enum exit_status status = 0;

	for (unsigned int i = 0; i < o->knobs && !status; i++) {
		if (!knob_is_per_cpu(o->knob[i].name)) {
			status = set_knob(run, out, &o->knob[i], 0);
			continue;
		}
		for (int cpu = cpulist_next(&o->cpus, 0); cpu >= 0 && !status;
		     cpu = cpulist_next(&o->cpus, (unsigned int)cpu + 1))
			status = set_knob(run, out, &o->knob[i], cpu);
	}
	return status;
}

/* As found is recorded; 0 is held only when asked, since it flatters the machine. The
 * kernel forgets the request when the file is closed, also by a kill. */
static void look_at_dma_latency(struct run *run)
{
	bool hold = run->options->hold_cpu_awake;
	int32_t us;

	run->dma_latency.us = -1;
	run->dma_latency.fd =
		open("/dev/cpu_dma_latency", (hold ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (run->dma_latency.fd < 0)
		return;
	if (read(run->dma_latency.fd, &us, sizeof(us)) == sizeof(us))
		run->dma_latency.us = us;
	us = 0;
	if (hold && write(run->dma_latency.fd, &us, sizeof(us)) == sizeof(us)) {
		run->dma_latency.held = true;
	} else {
		close(run->dma_latency.fd);
		run->dma_latency.fd = -1;
	}
}

static enum exit_status lock_memory(struct run *run, struct emit *out)
{
	struct rlimit limit = { 0 };
	int err;

	if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0)
		return EXIT_DONE;
	err = errno;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	snprintf(
		run->text, sizeof(run->text),
		"cannot lock the agent's memory: %s (RLIMIT_MEMLOCK is %lu KB, and the "
		"process lacks CAP_IPC_LOCK)",
		strerror(err), (unsigned long)(limit.rlim_cur / 1024));
	return emit_error(out, "memlock", run->text,
			  "raise it (ulimit -l, LimitMEMLOCK=, in a container --ulimit "
			  "memlock=-1), or run through sudo");
}

/* What refuses is told in the result: a run without a trace is a run. */
static int open_tracing(struct run *run)
{
	size_t size = run->count * sizeof(struct candidates);

	run->candidates = aligned_alloc(_Alignof(struct candidates), size);
	if (!run->candidates)
		return -ENOMEM;
	memset(run->candidates, 0, size);
	tracer_open(&run->tracer, &run->journal, run->candidates, run->count,
		    run->options);
	return 0;
}

static void begin_tracing(struct run *run)
{
	int tid[CPULIST_MAX_CPUS];

	if (!run->options->trace)
		return;
	for (unsigned int i = 0; i < run->count; i++)
		tid[i] = run->sampler[i].tid;
	if (tracer_works(&run->tracer))
		tracer_start(&run->tracer, tid);
	if (!tracer_works(&run->tracer))
		counterdeltas_start(&run->counterdeltas, run->candidates, run->count,
				    run->options->worst);
}

static void end_tracing(struct run *run)
{
	tracer_stop(&run->tracer);
	counterdeltas_stop(&run->counterdeltas);
}

static enum exit_status sample(struct run *run, struct emit *out)
{
	int64_t ended_ns;

	kthreads_take(&run->before.kthreads);
	snapshot_take("/proc/interrupts", &run->before.interrupts);
	snapshot_take("/proc/softirqs", &run->before.softirqs);
	snapshot_take("/proc/stat", &run->before.stat);
	clock_watch_begin(&run->clocks);
	run->locked_kb = usage_locked_kb();
	begin_tracing(run);
	samplers_release(run);
	if (run->growth)
		result_emit_started(run, out);
	samplers_watch(run, out);
	if (!samplers_wait(run))
		return samplers_starved(run, out);
	samplers_join(run);
	end_tracing(run);
	if (events_broken(run, out) || reports_broken(run, out))
		return EXIT_INVALID;
	munlockall(); /* what follows is allocation and printing */

	snapshot_take("/proc/stat", &run->after.stat);
	snapshot_take("/proc/softirqs", &run->after.softirqs);
	snapshot_take("/proc/interrupts", &run->after.interrupts);
	kthreads_take(&run->after.kthreads);
	/* a run that is stopped at once ends before its grid begins */
	ended_ns = clock_now_ns() - run->start_ns;
	result_emit_tick(run, out, ended_ns > 0 ? ended_ns : 0);
	return EXIT_DONE;
}

/* As many as the longest grid has. */
static uint32_t periods(const struct options *o)
{
	return (uint32_t)(o->duration_ns / o->interval_ns + 1);
}

static enum exit_status prepare(struct run *run, struct emit *out)
{
	enum exit_status status = choose_cpus(run, out);

	if (status)
		return status;
	status = set_knobs(run, out);
	if (status)
		return status;
	result_emit_hello(run, out);
	if (run->options->trace && open_tracing(run))
		return emit_error(out, "memlock", "no memory for tracing",
				  "measure fewer CPUs with --cpus");

	klog_open(&run->klog);
	sensors_open(&run->sensors, &run->options->cpus);
	if (run->options->growth)
		meters_open(&run->meters, "");
	look_at_dma_latency(run);
	if (run->options->hold_cpu_awake && !run->dma_latency.held)
		return emit_error(out, "capability",
				  "cannot hold /dev/cpu_dma_latency at 0",
				  "run through sudo, or without --hold-cpu-awake");
	status = events_open(run, out); /* network namespaces need rights */
	if (!status)
		status = hwlat_open(run, out);
	if (!status)
		status = timerlat_open(run, out);
	if (status)
		return status;
	if (rights_drop(sensors_have_smi()))
		return emit_error(out, "other", "cannot drop capabilities", "");

	run->sampler = sampler_alloc(run->threads);
	if (!run->sampler)
		return emit_error(out, "memlock", "no memory for the measuring threads",
				  "measure fewer CPUs with --cpus");
	if (run->options->growth) {
		run->growth = growth_alloc(run->count);
		if (!run->growth)
			return emit_error(out, "memlock",
					  "no memory for what a second has added",
					  "measure fewer CPUs with --cpus");
	}
	if (run->options->keep_samples) {
		run->samples = samples_alloc(run->count, periods(run->options));
		if (!run->samples)
			return emit_error(out, "memlock",
					  "no memory for each wake-up of the run",
					  "measure for a shorter time, fewer CPUs with "
					  "--cpus, or without --keep-samples");
	}
	/* threads inherit it until they pin themselves; the supervisor stays */
	if (cpulist_count(&run->housekeeping))
		cpulist_set_affinity(&run->housekeeping);
	status = lock_memory(run, out);
	return status ? status : samplers_start(run, out);
}

static void note_restored(void *context, const struct journal_entry *entry)
{
	struct run *run = context;
	const char *knob = entry->knob;

	for (unsigned int i = 0; i < run->restored_count; i++)
		if (strcmp(run->restored[i], knob) == 0)
			return; /* once for all CPUs */
	if (run->restored_count < RUN_MAX_RESTORED)
		snprintf(run->restored[run->restored_count++], KNOB_NAME_MAX, "%s",
			 knob);
}

enum exit_status measure(struct options *options, struct emit *out)
{
	static struct run run; /* zero, and too large for a stack */
	enum exit_status status;

	run.options = options;
	journal_init(&run.journal);
	run.klog.fd = -1;
	if (journal_replay(JOURNAL_DIR, "", note_restored, &run))
		return emit_error(
			out, "knob",
			"an earlier run was killed, and what it had changed on "
			"this machine cannot be put back",
			"run rtscope-agent restore as root; see " JOURNAL_DIR);

	status = prepare(&run, out);
	if (!status)
		status = sample(&run, out);
	if (status && run.started) {
		samplers_stop(&run);
		if (!run.starved)
			samplers_join(&run);
	}
	end_tracing(&run);
	events_close(&run);
	reports_close(&run);
	if (journal_restore(&run.journal, "", NULL, NULL))
		status = emit_error(out, "knob", "a setting could not be put back",
				    "run rtscope-agent restore as root");
	if (!status && run.ended_by == HOSTLINK_LOST)
		return emit_error(out, "link",
				  "nothing was heard from the host for a second: the "
				  "link was lost, or the host stood still",
				  "go on with rtscope run --resume");
	if (!status)
		status = result_emit(&run, out) ? EXIT_INVALID : EXIT_DONE;
	return status;
}
