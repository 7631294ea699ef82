/* SPDX-License-Identifier: MIT */
#include "watch/watchkinds.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files/slurp.h"
#include "machine/tracefs.h"
#include "watch/watchcalls.h"
#include "watch/watchflow.h"

#define COUNT_OF(list) (sizeof(list) / sizeof(*(list)))

static const struct perfevent_kind software_kinds[] = {
	{ .name = "minor_fault",
	  .config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
	  .sampled = true },
	/* each waits for a device: no storm of them stops an event that copies stacks */
	{ .name = "major_fault",
	  .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
	  .sampled = true,
	  .by_hand = true },
	{ .name = "migration", .config = PERF_COUNT_SW_CPU_MIGRATIONS },
#ifndef __x86_64__ /* its kernel counts neither, and each event delays a wake-up */
	{ .name = "alignment_fault", .config = PERF_COUNT_SW_ALIGNMENT_FAULTS },
	{ .name = "emulation_fault", .config = PERF_COUNT_SW_EMULATION_FAULTS },
#endif
};

struct tracepoint {
	const char *name, *event, *filter;
};

#define ALL_CALLS "raw_syscalls/sys_enter"

/* A real-time thread that stops although it could run: 0, or 0x100 if it was preempted. */
#define RUNNABLE "(prev_state == 0 || prev_state == 256) && prev_prio < 100"

static const struct tracepoint tracepoints[] = {
	/* to a real-time thread or interrupt thread; to an ordinary one only where the
	 * kernel takes the CPU from all real-time threads */
	{ "preempted", "sched/sched_switch", RUNNABLE " && next_prio < 100" },
	{ "set_aside", "sched/sched_switch", RUNNABLE " && next_prio >= 100" },
	/* FUTEX_WAIT, _WAIT_BITSET, _LOCK_PI and _LOCK_PI2, private or not, with CLOCK_REALTIME or not */
	{ "lock_wait", "syscalls/sys_enter_futex",
	  "op == 0 || op == 128 || op == 9 || op == 137 || op == 265 || op == 393 || "
	  "op == 6 || op == 134 || op == 13 || op == 141 || op == 269 || op == 397" },
	/* FUTEX_WAKE, _WAKE_BITSET, _WAKE_OP, _UNLOCK_PI: where locks are let go */
	{ "lock_wake", "syscalls/sys_enter_futex",
	  "op == 1 || op == 129 || op == 10 || op == 138 || op == 5 || op == 133 || "
	  "op == 7 || op == 135" },
	/* for an interval, or by a clock that others set or that stands still: all but
	 * CLOCK_MONOTONIC, _BOOTTIME and _BOOTTIME_ALARM */
	{ "relative_sleep", "syscalls/sys_enter_clock_nanosleep",
	  "flags == 0 || (which_clock != 1 && which_clock != 7 && which_clock != 9)" },
	/* SIGKILL, which ends the other threads of one that executes a program, too; and
	 * what neither runs a handler nor stops the thread (SIGCHLD, CONT, URG, WINCH) */
	{ "signal", "signal/signal_deliver",
	  "sig != 9 && sa_handler != 1 && "
	  "(sa_handler != 0 || (sig != 17 && sig != 18 && sig != 23 && sig != 28))" },
};

static struct perfevent_kind *add(struct watch *w, struct perfevent_kind kind, int err)
{
	w->refused[w->kinds] = err;
	w->kind[w->kinds] = kind;
	return &w->kind[w->kinds++];
}

/* Their fields are those of a system call: a number, and six arguments. */
static bool is_call(const char *event)
{
	return strstr(event, "syscalls/");
}

static void add_tracepoint(struct watch *w, const char *tracefs, int err,
			   const struct tracepoint *t)
{
	char path[TRACEFS_PATH + 64];
	int64_t id = 0;

	snprintf(path, sizeof(path), "%s/events/%s/id", tracefs, t->event);
	if (!err)
		err = slurp_int(path, &id);
	add(w,
	    (struct perfevent_kind){ .name = t->name,
				     .type = PERF_TYPE_TRACEPOINT,
				     .config = (uint64_t)id,
				     .filter = t->filter,
				     .is_call = is_call(t->event),
				     .sampled = true,
				     .by_hand = true },
	    err);
}

/* What the kernel's tracepoint tells of a thread, too, need not be the thread's own. */
static void find_migrations(struct watch *w, const char *tracefs)
{
	char path[TRACEFS_PATH + 64];
	int64_t id;

	snprintf(path, sizeof(path), "%s/events/sched/sched_migrate_task/id", tracefs);
	for (unsigned int i = 0; i < w->kinds; i++)
		if (w->kind[i].type == PERF_TYPE_SOFTWARE &&
		    w->kind[i].config == PERF_COUNT_SW_CPU_MIGRATIONS &&
		    slurp_int(path, &id) == 0)
			w->kind[i].of_cpu = (uint64_t)id;
}

/* The tracepoints of single calls are silent for programs of another kind than the
 * kernel's own: ARCH_TRACE_IGNORE_COMPAT_SYSCALLS. That of all calls is not. */
static bool has_own_tracepoints(const struct watch *w)
{
	const bool narrow = w->abi == CALLS_ARM || w->abi == CALLS_I386;

	return w->abi != CALLS_X32 && !(narrow && w->flow.form.word == 8);
}

/* Which calls wait and which wake, is_wanted() tells of samples of all of them. A sleep's
 * arguments no filter sees there. */
static void add_tracepoint_of_any(struct watch *w, const char *tracefs, int err,
				  const struct tracepoint *t)
{
	const bool of_words = strstr(t->event, "futex");
	struct tracepoint all = { t->name, ALL_CALLS, w->words_filter };

	if (has_own_tracepoints(w) || !is_call(t->event))
		add_tracepoint(w, tracefs, err, t);
	else
		add_tracepoint(w, tracefs, of_words ? err : WATCH_NARROW, &all);
}

static void add_tracepoints(struct watch *w)
{
	struct tracepoint calls = { .event = ALL_CALLS };
	char tracefs[TRACEFS_PATH] = "";
	const int err = tracefs_find("", tracefs);

	if (!err)
		find_migrations(w, tracefs);
	watchflow_make(w, tracefs, err);
	watchcalls_filter_memory(w->memory_filter, WATCH_FILTER, w->abi);
	watchcalls_filter_blocking(w->blocking_filter, WATCH_FILTER, w->abi);
	watchcalls_filter_words(w->words_filter, WATCH_FILTER, w->abi);
	for (size_t i = 0; i < COUNT_OF(tracepoints); i++)
		add_tracepoint_of_any(w, tracefs, err, &tracepoints[i]);
	calls.name = "memory_call";
	calls.filter = w->memory_filter;
	add_tracepoint(w, tracefs, err, &calls);
	calls.name = "blocking_call";
	calls.filter = w->blocking_filter;
	add_tracepoint(w, tracefs, err, &calls);
}

#define LINK "/proc/self/fd/"

void watchkinds_make(struct watch *w, const struct options *o)
{
	/* A link to a file in the memory of the process ends when that executes another
	 * program: a descriptor does not. */
	static char link[OPTIONS_MAX_PROBES][sizeof(LINK) + 11];
	const int probe_type = o->probes ? perfevent_probe_type() : 0;

	for (size_t i = 0; i < COUNT_OF(software_kinds); i++)
		add(w, software_kinds[i], 0)->type = PERF_TYPE_SOFTWARE;
	w->abi = watchproc_abi(w->pid);
	add_tracepoints(w);
	for (unsigned int i = 0; i < o->probes; i++) {
		const int fd = open(o->probe[i].path, O_PATH | O_CLOEXEC);
		const bool gone = fd < 0 && errno == ENOENT;

		snprintf(link[i], sizeof(link[i]), LINK "%d", fd);
		add(w,
		    (struct perfevent_kind){ .name = o->probe[i].name,
					     .type = (uint32_t)probe_type,
					     .path = fd < 0 ? o->probe[i].path
							    : link[i],
					     .offset = o->probe[i].offset,
					     .sampled = true,
					     .by_hand = true },
		    probe_type < 0 ? probe_type
		    : gone         ? -ESTALE
				   : 0);
	}
	for (unsigned int i = 0; i < w->kinds; i++)
		w->samplers +=
			w->kind[i].sampled && w->kind[i].type == PERF_TYPE_SOFTWARE;
}
