/* SPDX-License-Identifier: MIT */
#include "cycles/cyclewatch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cycles/cyclepick.h"
#include "cycles/cycles.h"
#include "cycles/cyclewaits.h"
#include "cycles/pickqueue.h"
#include "files/slurp.h"
#include "host/version.h"
#include "journal/journal.h"
#include "thread/clock.h"
#include "thread/rights.h"
#include "thread/wakecost.h"
#include "trace/counterdeltas.h"
#include "trace/tracer.h"
#include "trace/tracereport.h"

#define LOOK_NS INT64_C(50000000) /* between two times that the rings are emptied */
#define OWN_SLEEP_NS  100000
#define FORMAT_BYTES  8192
#define RUNS_PER_LINE 128
#define MAX_RUNS      (1 << 20) /* of all threads; later ones are counted */
#define MAX_PICKS     (1 << 18) /* of 50 ms: 5 million events a second */
#define TIMED_SHARE                                                                    \
	8 /* timers wake it at least once in so many times: a cycle is theirs */

struct cycle_of_thread {
	int tid;
	int64_t begin_ns;    /* of its cycle */
	unsigned int wait;   /* in which a timer woke it for that; 0: none */
	int64_t worst_ns;    /* the longest that was kept */
	uint64_t due, other; /* how often a timer woke it, or something else */
};

struct cyclewatch {
	struct emit *out;
	struct options *options;
	struct journal journal;
	struct tracer tracer;
	struct cyclepick pick;
	struct cycles cycles;
	struct pickqueue queue;
	int64_t page_ends_ns[CPULIST_MAX_CPUS];
	struct cycle_of_thread thread[CYCLES_MAX_THREADS];
	struct cyclerun run[RUNS_PER_LINE];
	unsigned int runs;
	uint64_t emitted, left_out, losses;
	int tid[CYCLES_MAX_THREADS];
	int64_t not_watched;
	int64_t from_ns, to_ns;
	struct wakecost plain, recorded; /* how late a wake-up is */
	bool knows_waits;
	bool gone;
};

static void emit_runs(struct cyclewatch *w)
{
	if (!w->runs)
		return;
	emit_begin(w->out, "cycle_runs");
	emit_open(w->out, "runs", '[');
	for (unsigned int i = 0; i < w->runs; i++) {
		const struct cyclerun *r = &w->run[i];

		emit_open(w->out, NULL, '[');
		emit_int(w->out, NULL, r->tid);
		emit_int(w->out, NULL, w->tracer.cpu[r->cpu]);
		emit_int(w->out, NULL, r->armed_ns);
		emit_int(w->out, NULL, r->due_ns);
		emit_int(w->out, NULL, r->woken_ns);
		emit_int(w->out, NULL, r->in_ns);
		emit_int(w->out, NULL, r->out_ns);
		emit_int(w->out, NULL, r->ran_ns);
		emit_int(w->out, NULL, (int64_t)r->preempted);
		emit_int(w->out, NULL, (int64_t)r->flags);
		emit_close(w->out, ']');
	}
	emit_close(w->out, ']');
	emit_end_later(w->out);
	w->runs = 0;
}

static struct cycle_of_thread *cycle_of(struct cyclewatch *w, int tid)
{
	for (unsigned int i = 0; i < w->cycles.threads; i++)
		if (w->thread[i].tid == tid)
			return &w->thread[i];
	return NULL;
}

/* The whole trace around a cycle that is longer than those of its thread before. */
static void keep_longest(struct cyclewatch *w, const struct cyclerun *r)
{
	struct cycle_of_thread *c = cycle_of(w, r->tid);
	struct trace_kept kept = { .cpu = w->tracer.cpu[r->cpu], .own = r->cpu };
	const unsigned int wait = r->flags / CYCLE_WAIT;
	bool timed, serves;

	if (!c || r->flags & (CYCLE_CUT | CYCLE_BETWEEN))
		return;
	timed = r->due_ns > 0 && !(r->flags & CYCLE_WITHIN);
	c->due += timed;
	c->other += !timed;
	serves = !timed && wait && wait == c->wait;
	if (timed)
		c->wait = wait;
	if (serves || (!timed && (c->due * TIMED_SHARE < c->other || !c->begin_ns)))
		c->begin_ns = r->woken_ns;
	else if (r->due_ns > 0)
		c->begin_ns = r->due_ns;
	if (r->out_ns - c->begin_ns <= c->worst_ns)
		return;
	c->worst_ns = r->out_ns - c->begin_ns;
	kept.wakeup = (struct wakeup){ .seq = (uint64_t)r->tid,
				       .expiry_ns = c->begin_ns,
				       .wake_ns = r->out_ns };
	kept.from_ns = c->begin_ns - w->tracer.before_ns;
	kept.to_ns = r->out_ns + w->tracer.after_ns;
	tracewindow_want(&w->tracer.window, &kept);
}

static void take_run(void *context, const struct cyclerun *run)
{
	struct cyclewatch *w = context;

	keep_longest(w, run);
	if (w->emitted == MAX_RUNS) {
		w->left_out++;
		return;
	}
	w->emitted++;
	w->run[w->runs++] = *run;
	if (w->runs == RUNS_PER_LINE)
		emit_runs(w);
}

static void take_pick(void *context, const struct pick *pick)
{
	struct cyclewatch *w = context;

	pickqueue_add(&w->queue, pick);
}

static void take_page(void *context, unsigned int cpu, const unsigned char *page)
{
	struct cyclewatch *w = context;
	struct tracepage_span span;
	const bool damaged = tracepage_span(&w->tracer.window.layout, page, &span);
	struct pick lost = { .at_ns = w->page_ends_ns[cpu],
			     .kind = PICK_LOST,
			     .cpu = cpu };

	if (damaged || span.missed) {
		lost.when_ns = damaged ? lost.at_ns : span.first_ns;
		lost.seq = w->pick.seq++;
		w->losses++;
		take_pick(w, &lost);
	}
	if (damaged)
		return;
	cyclepick_page(&w->pick, &w->tracer.window.layout, page, cpu, take_pick, w);
	w->page_ends_ns[cpu] = span.last_ns;
}

static void give_pick(void *context, const struct pick *pick)
{
	struct cyclewatch *w = context;

	cycles_take(&w->cycles, pick);
}

/* What is older than the time at which the rings began to be emptied is complete. */
static void take_picks(struct cyclewatch *w, int64_t until_ns)
{
	pickqueue_give(&w->queue, until_ns, give_pick, w);
	emit_runs(w);
}

/* 0, or -ESRCH if the process is not there. */
static int look_for_threads(struct cyclewatch *w)
{
	char path[64];
	struct dirent *entry;
	int64_t beyond = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", w->options->pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir))) {
		const int tid = isdigit((unsigned char)entry->d_name[0])
					? atoi(entry->d_name)
					: 0;
		const unsigned int i = w->cycles.threads;

		if (tid && i == CYCLES_MAX_THREADS)
			beyond += !(w->pick.watched[tid >> 3] >> (tid & 7) & 1);
		else if (tid && cyclepick_watch(&w->pick, tid) &&
			 cycles_add(&w->cycles, tid)) {
			w->thread[i].tid = tid;
			w->tid[i] = tid;
		}
	}
	closedir(dir);
	w->not_watched = beyond > w->not_watched ? beyond : w->not_watched;
	return 0;
}

static void read_formats(struct cyclewatch *w)
{
	static const char *const names[][2] = {
		{ "sched", "sched_switch" },        { "sched", "sched_waking" },
		{ "timer", "hrtimer_start" },       { "timer", "hrtimer_expire_entry" },
		{ "timer", "hrtimer_expire_exit" }, { "raw_syscalls", "sys_enter" },
		{ "raw_syscalls", "sys_exit" },
	};
	char path[TRACEFS_PATH + 64];
	static char text[FORMAT_BYTES];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/events/%s/%s/format",
			 w->tracer.tracefs, names[i][0], names[i][1]);
		if (slurp(path, text, sizeof(text)) > 0)
			cyclepick_format(&w->pick, names[i][1], text);
	}
}

static void record_waits(struct cyclewatch *w)
{
	if (w->knows_waits)
		cyclewaits_record(w->tracer.instance, w->tid, w->cycles.threads);
}

static enum hostlink_end record_until(struct cyclewatch *w)
{
	int64_t now_ns = clock_now_ns();
	const int64_t end_ns = now_ns + w->options->duration_ns;
	enum hostlink_end ended = HOSTLINK_UP;
	unsigned int threads = w->cycles.threads;

	while (now_ns < end_ns && ended == HOSTLINK_UP && !w->out->error) {
		int64_t next_ns = now_ns + LOOK_NS;
		struct timespec until =
			ns_timespec(next_ns < end_ns ? next_ns : end_ns);

		clock_sleep_until(&until);
		if (look_for_threads(w) == -ESRCH) {
			w->gone = true;
			break;
		}
		if (w->cycles.threads > threads)
			record_waits(w);
		threads = w->cycles.threads;
		now_ns = clock_now_ns();
		tracer_round(&w->tracer);
		take_picks(w, now_ns);
		ended = hostlink_check(&w->options->link, now_ns);
	}
	return ended;
}

static void emit_beginning(struct cyclewatch *w)
{
	emit_begin(w->out, "cycles");
	emit_int(w->out, "schema", CONTRACT_SCHEMA);
	emit_int(w->out, "pid", w->options->pid);
	emit_int(w->out, "from_ns", w->from_ns);
	emit_end(w->out);
}

static int emit_ending(struct cyclewatch *w, enum hostlink_end ended)
{
	const struct counterdeltas none = { .count = 0 };
	const char *stopped = hostlink_word(ended);
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	tracereport_emit_trace(&w->tracer, w->out);
	emit_begin(w->out, "cycles_end");
	emit_int(w->out, "to_ns", w->to_ns);
	emit_text(w->out, "stopped", w->gone ? "ended" : stopped ? stopped : "");
	emit_int(w->out, "runs", (int64_t)w->emitted);
	emit_int(w->out, "left_out", (int64_t)w->left_out);
	emit_int(w->out, "cut", (int64_t)w->cycles.cut);
	emit_int(w->out, "losses", (int64_t)(w->losses + w->queue.losses));
	emit_int(w->out, "not_watched", w->not_watched);
	emit_int(w->out, "agent_cpu_ns", timespec_ns(used));
	emit_int(w->out, "wakeup_plain_ns", w->plain.alone_ns);
	emit_int(w->out, "wakeup_recorded_ns", w->recorded.alone_ns);
	emit_int(w->out, "wakeup_beside_plain_ns", w->plain.beside_ns);
	emit_int(w->out, "wakeup_beside_recorded_ns", w->recorded.beside_ns);
	tracereport_emit_summary(&w->tracer, &none, w->out);
	return emit_end(w->out);
}

static void refuse_events(struct tracer *t)
{
	t->refusal.cause = "unbuilt";
	t->refusal.remedy =
		"use a kernel with CONFIG_FTRACE and CONFIG_FTRACE_SYSCALLS";
	snprintf(t->refusal.what, sizeof(t->refusal.what),
		 "this kernel has no events sched_switch and sched_waking");
}

/* The events show which callback ends such a sleep. */
static void sleep_as_programs_do(struct cyclewatch *w)
{
	struct timespec until;

	w->cycles.own_tid = (int)syscall(SYS_gettid);
	w->cycles.own_ns = clock_now_ns() + OWN_SLEEP_NS;
	until = ns_timespec(w->cycles.own_ns);
	clock_sleep_until(&until);
}

/* This thread as well: it wakes to measure what a wake-up of the others costs. */
static void record_all(struct cyclewatch *w)
{
	int tid[CYCLES_MAX_THREADS + 1];
	const unsigned int threads = w->cycles.threads;

	if (!tracer_works(&w->tracer))
		return;
	record_waits(w);
	memcpy(tid, w->tid, threads * sizeof(*tid));
	tid[threads] = (int)syscall(SYS_gettid);
	tracer_record(&w->tracer, tid, threads + 1);
}

static enum exit_status record(struct cyclewatch *w)
{
	enum hostlink_end ended = HOSTLINK_UP;

	w->knows_waits = cyclewaits_known(w->options->pid);
	if (rights_drop(false))
		return emit_error(w->out, "other", "cannot drop capabilities", "");
	if (look_for_threads(w))
		return emit_error(w->out, "missing", "there is no such process",
				  "list processes: rtscope tasks");
	if (tracer_works(&w->tracer)) {
		read_formats(w);
		if (!cyclepick_works(&w->pick))
			refuse_events(&w->tracer);
	}
	wakecost_begin(w->options->pid);
	w->from_ns = clock_now_ns();
	record_all(w);
	if (tracer_works(&w->tracer)) {
		sleep_as_programs_do(w);
		w->recorded = wakecost_measure();
	}
	wakecost_end();
	emit_beginning(w); /* from now on others may measure what recording adds */
	if (tracer_works(&w->tracer))
		ended = record_until(w);
	w->to_ns = clock_now_ns();
	tracer_stop(&w->tracer); /* some time later, with the events until then */
	w->cycles.until_ns = w->to_ns;
	take_picks(w, INT64_MAX);
	cycles_end(&w->cycles);
	return emit_ending(w, ended) ? EXIT_INVALID : EXIT_DONE;
}

static enum exit_status watch_cycles(struct cyclewatch *w)
{
	enum exit_status status;

	w->queue.pick = calloc(MAX_PICKS, sizeof(*w->queue.pick));
	w->queue.most = MAX_PICKS;
	if (!w->queue.pick)
		return emit_error(w->out, "memlock", "no memory to watch a process",
				  "");
	/* first: events cost half of their time from when they are on, and are on before
	 * they are recorded */
	wakecost_begin(w->options->pid);
	w->plain = wakecost_measure();
	wakecost_end();
	tracer_open(&w->tracer, &w->journal, NULL, 0, w->options);
	w->tracer.page_read = take_page;
	w->tracer.page_context = w;
	status = record(w);
	tracer_stop(&w->tracer);
	if (journal_restore(&w->journal, "", NULL, NULL))
		status = emit_error(w->out, "knob", "a setting could not be put back",
				    "run rtscope-agent restore as root");
	tracer_free(&w->tracer);
	return status;
}

enum exit_status cyclewatch(struct options *options, struct emit *out)
{
	/* Too large for a stack; and static, a measurement would lock it into memory. */
	struct cyclewatch *w = calloc(1, sizeof(*w));
	enum exit_status status;

	if (!w)
		return emit_error(out, "memlock", "no memory to watch a process", "");
	w->out = out;
	w->options = options;
	w->cycles.done = take_run;
	w->cycles.context = w;
	journal_init(&w->journal);
	if (journal_replay(JOURNAL_DIR, "", NULL, NULL)) {
		free(w);
		return emit_error(
			out, "knob",
			"an earlier run was killed, and what it had changed "
			"on this machine cannot be put back",
			"run rtscope-agent restore as root; see " JOURNAL_DIR);
	}
	status = watch_cycles(w);
	free(w->queue.pick);
	free(w);
	return status;
}
