/* SPDX-License-Identifier: MIT */
#include "watchkinds.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "slurp.h"
#include "tracefs.h"

#define COUNT_OF(list) (sizeof(list) / sizeof(*(list)))

static const struct perfevent_kind software_kinds[] = {
	{ .name = "minor_fault",
	  .config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
	  .sampled = true },
	{ .name = "major_fault",
	  .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
	  .sampled = true },
	{ .name = "migration", .config = PERF_COUNT_SW_CPU_MIGRATIONS },
	{ .name = "switch", .config = PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ .name = "alignment_fault", .config = PERF_COUNT_SW_ALIGNMENT_FAULTS },
	{ .name = "emulation_fault", .config = PERF_COUNT_SW_EMULATION_FAULTS },
};

/* They take the lock of the process's memory, which faults of all its threads need. */
static const int memory_calls[] = {
#ifdef SYS_mmap2
	SYS_mmap2,
#else
	SYS_mmap,
#endif
	SYS_munmap, SYS_mprotect, SYS_brk,      SYS_madvise,    SYS_mremap,
	SYS_mlock,  SYS_munlock,  SYS_mlockall, SYS_munlockall,
};

/* They may wait for a device, another program or the network; of futex and
 * clock_nanosleep only some, and epoll is how a thread should wait for many. */
static const int blocking_calls[] = {
	SYS_read,        SYS_write,   SYS_pread64,  SYS_pwrite64,  SYS_readv,
	SYS_writev,      SYS_openat,  SYS_fsync,    SYS_fdatasync, SYS_sync,
	SYS_ioctl,       SYS_ppoll,   SYS_pselect6, SYS_sendto,    SYS_recvfrom,
	SYS_sendmsg,     SYS_recvmsg, SYS_accept,   SYS_accept4,   SYS_connect,
	SYS_sched_yield, SYS_clone,   SYS_clone3,   SYS_execve,    SYS_waitid,
	SYS_flock,
#ifdef SYS_nanosleep
	SYS_nanosleep,
#endif
#ifdef SYS_open
	SYS_open,
#endif
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_select
	SYS_select,
#endif
#ifdef SYS_wait4
	SYS_wait4,
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

static void filter_calls(char filter[WATCH_FILTER], const int *calls, size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count && used < WATCH_FILTER; i++)
		used += (size_t)snprintf(filter + used, WATCH_FILTER - used,
					 "%sid == %d", i ? " || " : "", calls[i]);
}

static void add_tracepoints(struct watch *w)
{
	struct tracepoint calls = { .event = "raw_syscalls/sys_enter" };
	char tracefs[TRACEFS_PATH] = "";
	const int err = tracefs_find("", tracefs);

	for (size_t i = 0; i < COUNT_OF(tracepoints); i++)
		add_tracepoint(w, tracefs, err, &tracepoints[i]);
	filter_calls(w->memory_filter, memory_calls, COUNT_OF(memory_calls));
	filter_calls(w->blocking_filter, blocking_calls, COUNT_OF(blocking_calls));
	calls.name = "memory_call";
	calls.filter = w->memory_filter;
	add_tracepoint(w, tracefs, err, &calls);
	calls.name = "blocking_call";
	calls.filter = w->blocking_filter;
	add_tracepoint(w, tracefs, err, &calls);
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
		w->samplers += w->kind[i].sampled && !w->kind[i].by_hand;
}
