/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "counters.h"
#include "crew.h"
#include "journal.h"
#include "klog.h"
#include "kthreads.h"
#include "result.h"
#include "rights.h"
#include "run.h"
#include "sampler.h"
#include "sensors.h"
#include "slurp.h"

int measure_fail(struct emit *out, const char *cause, const char *message,
		 const char *remedy)
{
	emit_begin(out, "error");
	emit_text(out, "message", message);
	emit_text(out, "cause", cause);
	emit_text(out, "remedy", remedy);
	emit_end(out);
	return 3;
}

/* Where this process runs, and where it might: with isolcpus= every process begins on the
 * other CPUs, and may go to those all the same. */
static int find_cpus(struct cpulist *usable, struct cpulist *reachable)
{
	struct cpulist all = { 0 };
	int err = cpulist_get_affinity(usable);

	if (err)
		return err;
	for (unsigned int cpu = 0; cpu < CPULIST_MAX_CPUS; cpu++)
		cpulist_add(&all, cpu);
	*reachable = *usable;
	if (cpulist_set_affinity(&all) < 0)
		return 0;
	err = cpulist_get_affinity(reachable);
	cpulist_set_affinity(usable);
	return err;
}

static int choose_cpus(struct run *run, struct emit *out)
{
	struct cpulist usable, reachable, missing;
	char list[CPULIST_TEXT_MAX], message[OPTIONS_TEXT];

	if (find_cpus(&usable, &reachable))
		return measure_fail(out, "other", "cannot read the CPUs I may use", "");
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
		return measure_fail(out, "cpu", message, run->text);
	}

	run->housekeeping = usable;
	cpulist_subtract(&run->housekeeping, &run->options->cpus);
	run->count = cpulist_count(&run->options->cpus);
	return 0;
}

static int set_knob(struct run *run, struct emit *out, const struct knob_wish *wish,
		    int index)
{
	const struct knob_place place = { "", wish->name, index };
	int err = journal_set_knob(&run->journal, JOURNAL_DIR, &place, wish->value);

	if (!err)
		return 0;
	snprintf(run->text, sizeof(run->text), "cannot set %s to %s: %s", wish->name,
		 wish->value,
		 err == JOURNAL_HELD ? "another running rtscope has changed it"
				     : strerror(-err));
	return measure_fail(out, "knob", run->text,
			    err == -EACCES || err == -EPERM
				    ? "changing settings of the machine needs root"
			    : err == -ENOENT ? "this machine has no such setting"
					     : "leave the setting as it is");
}

static int set_knobs(struct run *run, struct emit *out)
{
	const struct options *o = run->options;
	int status = 0;

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
 * kernel forgets the wish when the file is closed, also by a kill. */
static void look_at_dma_latency(struct run *run)
{
	bool hold = run->options->hold_cpu_awake;
	int32_t us;

	run->dma_latency_us = -1;
	run->dma_latency_fd =
		open("/dev/cpu_dma_latency", (hold ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (run->dma_latency_fd < 0)
		return;
	if (read(run->dma_latency_fd, &us, sizeof(us)) == sizeof(us))
		run->dma_latency_us = us;
	us = 0;
	if (hold && write(run->dma_latency_fd, &us, sizeof(us)) == sizeof(us)) {
		run->dma_latency_held = true;
	} else {
		close(run->dma_latency_fd);
		run->dma_latency_fd = -1;
	}
}

static int lock_memory(struct run *run, struct emit *out)
{
	struct rlimit limit = { 0 };
	int err;

	if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0)
		return 0;
	err = errno;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	snprintf(
		run->text, sizeof(run->text),
		"cannot lock the agent's memory: %s (RLIMIT_MEMLOCK is %lu KB, and the "
		"process lacks CAP_IPC_LOCK)",
		strerror(err), (unsigned long)(limit.rlim_cur / 1024));
	return measure_fail(
		out, "memlock", run->text,
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
	if (!run->options->trace)
		return;
	if (tracer_works(&run->tracer))
		tracer_start(&run->tracer, run->sampler);
	if (!tracer_works(&run->tracer))
		around_start(&run->around, run->candidates, run->sampler, run->count,
			     run->options->worst);
}

static void end_tracing(struct run *run)
{
	tracer_stop(&run->tracer);
	around_stop(&run->around);
}

static int sample(struct run *run, struct emit *out)
{
	int64_t ended_ns;

	kthreads_take(&run->kthreads_before);
	snapshot_take("/proc/interrupts", &run->interrupts_before);
	snapshot_take("/proc/softirqs", &run->softirqs_before);
	snapshot_take("/proc/stat", &run->stat_before);
	clock_watch_begin(&run->clocks);
	run->locked_kb = result_locked_kb();
	begin_tracing(run);
	crew_let_go(run);
	crew_watch(run, out);
	if (!crew_wait(run))
		return crew_starved(run, out);
	crew_join(run);
	end_tracing(run);
	munlockall(); /* what follows is allocation and printing */

	snapshot_take("/proc/stat", &run->stat_after);
	snapshot_take("/proc/softirqs", &run->softirqs_after);
	snapshot_take("/proc/interrupts", &run->interrupts_after);
	kthreads_take(&run->kthreads_after);
	/* a run that is stopped at once ends before its grid begins */
	ended_ns = clock_now_ns() - run->start_ns;
	result_emit_tick(run, out, ended_ns > 0 ? ended_ns : 0);
	return 0;
}

static int prepare(struct run *run, struct emit *out)
{
	int status = choose_cpus(run, out);

	if (status)
		return status;
	status = set_knobs(run, out);
	if (status)
		return status;
	result_emit_hello(run, out);
	if (run->options->trace && open_tracing(run))
		return measure_fail(out, "memlock", "no memory for tracing",
				    "measure fewer CPUs with --cpus");

	klog_open(&run->klog);
	sensors_open(&run->sensors, &run->options->cpus);
	look_at_dma_latency(run);
	if (run->options->hold_cpu_awake && !run->dma_latency_held)
		return measure_fail(out, "capability",
				    "cannot hold /dev/cpu_dma_latency at 0",
				    "run through sudo, or without --hold-cpu-awake");
	if (rights_drop(sensors_have_smi()))
		return measure_fail(out, "other", "cannot drop capabilities", "");

	run->sampler = sampler_alloc(run->count);
	if (!run->sampler)
		return measure_fail(out, "memlock",
				    "no memory for the measuring threads",
				    "measure fewer CPUs with --cpus");
	/* threads inherit it until they pin themselves; the supervisor stays */
	if (cpulist_count(&run->housekeeping))
		cpulist_set_affinity(&run->housekeeping);
	status = lock_memory(run, out);
	return status ? status : crew_start(run, out);
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

int measure(struct options *options, struct emit *out)
{
	static struct run run; /* zero, and too large for a stack */
	int status;

	run.options = options;
	journal_init(&run.journal);
	run.klog.fd = -1;
	if (journal_replay(JOURNAL_DIR, "", note_restored, &run))
		return measure_fail(
			out, "knob",
			"an earlier run was killed, and what it had changed on "
			"this machine cannot be put back",
			"run rtscope-agent restore as root; see " JOURNAL_DIR);

	status = prepare(&run, out);
	if (!status)
		status = sample(&run, out);
	if (status && run.started) {
		crew_stop(&run);
		if (!run.starved)
			crew_join(&run);
	}
	end_tracing(&run);
	if (journal_restore(&run.journal, "", NULL, NULL))
		status = measure_fail(out, "knob", "a setting could not be put back",
				      "run rtscope-agent restore as root");
	if (!status && run.ended_by == TETHER_LINK)
		return measure_fail(out, "link",
				    "nothing was heard from the host for a second: the "
				    "link was lost, or the host stood still",
				    "go on with rtscope run --resume");
	if (!status)
		status = result_emit(&run, out) ? 3 : 0;
	return status;
}
