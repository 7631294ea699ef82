/* SPDX-License-Identifier: MIT */
#include "watch/watchkinds.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "files/slurp.h"
#include "machine/tracefs.h"

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

struct call {
	int number;
	const char *name;
};

#define CALL(name) { SYS_##name, #name }

/* They take the lock of the process's memory, which faults of all its threads need. */
static const struct call memory_calls[] = {
#ifdef SYS_mmap2
	CALL(mmap2),
#else
	CALL(mmap),
#endif
	CALL(munmap), CALL(mprotect), CALL(brk),      CALL(madvise),    CALL(mremap),
	CALL(mlock),  CALL(munlock),  CALL(mlockall), CALL(munlockall),
};

/* They may wait for a device, another program or the network; of futex and
 * clock_nanosleep only some, and epoll is how a thread should wait for many. */
static const struct call blocking_calls[] = {
	CALL(read),        CALL(write),  CALL(pread64),  CALL(pwrite64),
	CALL(readv),       CALL(writev), CALL(openat),   CALL(fsync),
	CALL(fdatasync),   CALL(sync),   CALL(ioctl),    CALL(ppoll),
	CALL(pselect6),    CALL(sendto), CALL(recvfrom), CALL(sendmsg),
	CALL(recvmsg),     CALL(accept), CALL(accept4),  CALL(connect),
	CALL(sched_yield), CALL(clone),  CALL(clone3),   CALL(execve),
	CALL(waitid),      CALL(flock),
#ifdef SYS_nanosleep
	CALL(nanosleep),
#endif
#ifdef SYS_open
	CALL(open),
#endif
#ifdef SYS_poll
	CALL(poll),
#endif
#ifdef SYS_select
	CALL(select),
#endif
#ifdef SYS_wait4
	CALL(wait4),
#endif
};

/* Their waits are for locks, and for conditions, which are no fault. */
static const struct call lock_calls[] = {
	CALL(futex),
#ifdef SYS_futex_time64
	CALL(futex_time64),
#endif
};

struct tracepoint {
	const char *name, *event, *filter;
};

/* A thread that stops although it could run: 0, or 0x100 if it was preempted. */
#define RUNNABLE "(prev_state == 0 || prev_state == 256)"

static const struct tracepoint tracepoints[] = {
	/* to a real-time thread or interrupt thread; to an ordinary one only where the
	 * kernel takes the CPU from all real-time threads */
	{ "preempted", "sched/sched_switch", RUNNABLE " && next_prio < 100" },
	{ "set_aside", "sched/sched_switch", RUNNABLE " && next_prio >= 100" },
	/* FUTEX_WAIT and FUTEX_WAIT_BITSET, private or not, with CLOCK_REALTIME or not */
	{ "lock_wait", "syscalls/sys_enter_futex",
	  "op == 0 || op == 128 || op == 9 || op == 137 || op == 265 || op == 393" },
	/* not to a time of CLOCK_MONOTONIC */
	{ "relative_sleep", "syscalls/sys_enter_clock_nanosleep",
	  "flags == 0 || which_clock == 0" },
	{ "signal", "signal/signal_deliver", NULL },
};

static struct perfevent_kind *add(struct watch *w, struct perfevent_kind kind, int err)
{
	w->refused[w->kinds] = err;
	w->kind[w->kinds] = kind;
	return &w->kind[w->kinds++];
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

struct calls {
	const struct call *call;
	size_t count;
};

#define CALLS(table) { table, COUNT_OF(table) }

static const struct calls timed_calls[] = {
	CALLS(memory_calls),
	CALLS(blocking_calls),
	CALLS(lock_calls),
};

#define MOST_CALLS 64
#define IN_A_ROW   4 /* so many comparisons are no more than a step of the search */

struct filter_text {
	char *text;
	size_t size, used; /* more than size: it has no room */
};

static void put(struct filter_text *f, const char *format, int number)
{
	const bool room = f->used < f->size;

	f->used += (size_t)snprintf(room ? f->text + f->used : NULL,
				    room ? f->size - f->used : 0, format, number);
}

static void put_search(struct filter_text *f, const int *id, size_t count)
{
	const size_t half = count / 2;

	if (count <= IN_A_ROW) {
		for (size_t i = 0; i < count; i++)
			put(f, i ? " || id == %d" : "id == %d", id[i]);
		return;
	}
	put(f, "(id < %d && (", id[half]);
	put_search(f, id, half);
	put(f, ")) || (id >= %d && (", id[half]);
	put_search(f, id + half, count - half);
	put(f, "))", 0);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* First the sleep of each cycle: the kernel compares its end while the thread wakes. The
 * others are searched for, since one comparison after the other would take long. */
static void filter_calls(char *filter, size_t size, const struct calls *some,
			 size_t count)
{
	struct filter_text f = { filter, size, 0 };
	int id[MOST_CALLS];
	size_t ids = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < some[i].count && ids < MOST_CALLS; j++)
			id[ids++] = some[i].call[j].number;
	qsort(id, ids, sizeof(*id), by_number);
#ifdef SYS_clock_nanosleep
	put(&f, "id != %d && (", SYS_clock_nanosleep);
#else
	put(&f, "(", 0);
#endif
	put_search(&f, id, ids);
	put(&f, ")", 0);
}

void watchkinds_filter_timed(char *filter, size_t size)
{
	filter_calls(filter, size, timed_calls, COUNT_OF(timed_calls));
}

static const char *name_in(const struct call *calls, size_t count, long number)
{
	for (size_t i = 0; i < count; i++)
		if (calls[i].number == number)
			return calls[i].name;
	return NULL;
}

#define FUTEX_COMMANDS 127 /* the rest are options: linux/futex.h */
#define WAIT           0
#define WAIT_BITSET    9
#define CONTENDED      2                    /* of glibc and of Rust */
#define HAS_WAITERS    UINT64_C(0x80000000) /* of musl, beside the owner's TID */

enum timeline_kind watchkinds_timed(long call, const uint64_t args[3],
				    const char **name)
{
	const uint64_t command = args[1] & FUTEX_COMMANDS;

	*name = name_in(blocking_calls, COUNT_OF(blocking_calls), call);
	if (*name)
		return TIMED_BLOCKING_CALL;
	*name = name_in(memory_calls, COUNT_OF(memory_calls), call);
	if (*name)
		return TIMED_MEMORY_CALL;
	*name = name_in(lock_calls, COUNT_OF(lock_calls), call);
	if (*name && (command == WAIT || command == WAIT_BITSET) &&
	    (args[2] == CONTENDED || args[2] & HAS_WAITERS))
		return TIMED_LOCK_WAIT;
	return TIMED_NOT;
}

static void add_tracepoints(struct watch *w)
{
	struct tracepoint calls = { .event = "raw_syscalls/sys_enter" };
	char tracefs[TRACEFS_PATH] = "";
	const int err = tracefs_find("", tracefs);

	if (!err)
		find_migrations(w, tracefs);
	for (size_t i = 0; i < COUNT_OF(tracepoints); i++)
		add_tracepoint(w, tracefs, err, &tracepoints[i]);
	filter_calls(w->memory_filter, WATCH_FILTER, &timed_calls[0], 1);
	filter_calls(w->blocking_filter, WATCH_FILTER, &timed_calls[1], 1);
	calls.name = "memory_call";
	calls.filter = w->memory_filter;
	add_tracepoint(w, tracefs, err, &calls);
	calls.name = "blocking_call";
	calls.filter = w->blocking_filter;
	add_tracepoint(w, tracefs, err, &calls);
	watchflow_make(w, tracefs, err);
}

void watchkinds_make(struct watch *w, const struct options *o)
{
	const int probe_type = o->probes ? perfevent_probe_type() : 0;

	for (size_t i = 0; i < COUNT_OF(software_kinds); i++)
		add(w, software_kinds[i], 0)->type = PERF_TYPE_SOFTWARE;
	add_tracepoints(w);
	for (unsigned int i = 0; i < o->probes; i++)
		add(w,
		    (struct perfevent_kind){ .name = o->probe[i].name,
					     .type = (uint32_t)probe_type,
					     .path = o->probe[i].path,
					     .offset = o->probe[i].offset,
					     .sampled = true,
					     .by_hand = true },
		    probe_type < 0 ? probe_type : 0);
	for (unsigned int i = 0; i < w->kinds; i++)
		w->samplers +=
			w->kind[i].sampled && w->kind[i].type == PERF_TYPE_SOFTWARE;
}
