/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options - the plugin's arguments, checked once: -plugin rtscope-plugin.so,NAME=VALUE,...
 *
 *   quantum=N          no CPU that executes is ahead of another by more than N
 *                      instructions; 0: a turn ends at the next timer only
 *   summary=FILE       at exit: what was counted, as JSON
 *   progress=FILE      all the time: how far the board is; and QEMU ends when its
 *                      standard input does, see progress.h
 *   out=FILE           at exit: the recorded paths, see format/plugin.md
 *   shift=N            an instruction takes 2^N ns, as given to -icount
 *   worst=K            how many of the worst wake-ups are kept, 1 to 64
 *   ring=N             how many records of the past are kept
 *   room=N             how many records the paths of the worst wake-ups may have together
 *   window=FIRST:LAST  also everything between two virtual times in ns; may be repeated,
 *                      in ascending order
 *   task=PLACE         where the current task's address is while the kernel runs,
 *   preempt=PLACE      and its preemption count: REGISTER, REGISTER@OFFSET (8 bytes in
 *                      memory) or REGISTER@OFFSET:4. For windows, for sections, and
 *                      `task` also for tasks:
 *   switched=ADDRESS   the kernel's function that begins when a CPU has switched to
 *                      another task: there the task is recorded,
 *   first-task=ADDRESS with its name, whose place is looked for in the first task
 *   wake=ADDRESS       the kernel's try_to_wake_up: there it is recorded whom it wakes
 *   rename=ADDRESS     of __set_task_comm: there a task's new name is recorded
 *   schedule=ADDRESS   also the longest sections without a switch, and all interrupts;
 *                      of the kernel's __schedule. Needs task, preempt and
 *   idle=ADDRESS       of the kernel's do_idle,
 *   sleep=ADDRESS      of its do_nanosleep,
 *   exit=ADDRESS       of its do_exit, and
 *   due=BIT            of the first 8 bytes of a task, that it is to be switched;
 *                      not on x86-64, where the preemption count tells
 *   program=FILE       all the time: what the threads of a program do, see outside.h.
 *                      Needs task, and for each of the three that follow numbers with
 *                      colons between them, in the order of the enumerations below:
 *   hooks=LIST         addresses of functions of the kernel; 0: it has none
 *   fields=LIST        offsets in a task
 *   time=LIST          how the kernel keeps time
 *   most=N             how many records are written
 *   parts=LIST         how long the parts of all wake-ups took, see parts.h: addresses as
 *                      of hooks, in the order of `enum options_place`. Needs what
 *                      program=FILE does, and is in its place
 *   use=LIST           also where functions of the program begin, each OFFSET@SUM: in
 *                      a page of code with this sum, see uses.h
 *   stacks=N           also the stack, at N places of each thread, see sites.h,
 *   stack=BYTES        so much of it,
 *   stacked=FIRST:LAST and only between two times in ns after the program's begin
 *   phase=START:N:PERIOD:NS in start number START of the program, the N-th thread of it
 *                      stands still before its first own instruction at a
 *                      real-time priority (the first thread: of all), until the virtual
 *                      time is NS beyond a multiple of PERIOD ns; may be repeated.
 *                      Needs program
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#define OPTIONS_WINDOWS   64
#define OPTIONS_WORST     64
#define OPTIONS_PHASES    4096
#define OPTIONS_PERIOD_NS INT64_C(3600000000000)
#define USES_PAGE         4096

struct window {
	uint64_t first, last; /* virtual ns */
};

struct phase {
	uint64_t start, number, period_ns, ns;
};

/* Where a function of a program begins, wherever that has it in memory. */
struct use {
	uint64_t offset; /* in a page */
	uint64_t sum;    /* of the page's content */
};

struct place {
	char name[24]; /* of the register; empty: not given */
	bool in_memory;
	int64_t offset;
	unsigned int bytes;
};

#define OPTIONS_USES   64
#define OPTIONS_STACK  65536
#define OPTIONS_STACKS 1024 /* of a thread */

/* The functions at whose beginning something is recorded. */
enum options_hook {
	HOOK_WAKE,        /* try_to_wake_up(task, ...) */
	HOOK_ACTIVATE,    /* ttwu_do_activate(run queue, task, ...) */
	HOOK_SWITCHED,    /* finish_task_switch(task before) */
	HOOK_SLEEPER,     /* hrtimer_wakeup(timer) */
	HOOK_TIMERFD,     /* timerfd_tmrproc(timer) */
	HOOK_POSIX_TIMER, /* posix_timer_fn(timer) */
	HOOK_ITIMER,      /* it_real_fn(timer) */
	HOOK_NEW,         /* wake_up_new_task(task) */
	HOOK_RENAME,      /* __set_task_comm(task, name, ...) */
	HOOK_EXIT,        /* do_exit(code) */
	HOOK_CALL,        /* what is given the registers of a system call */
	HOOK_FAULT,       /* handle_mm_fault(area, address, flags, registers) */
	HOOK_MUTEX,       /* __mutex_lock(mutex, ...): a slow path, as the next two */
	HOOK_READ,        /* rwsem_down_read_slowpath(semaphore, ...) */
	HOOK_WRITE,       /* rwsem_down_write_slowpath(semaphore, ...) */
	HOOK_LENDING, /* task_blocks_on_rt_mutex(lock, ...); not with FIELD_BLOCKED */
	OPTIONS_HOOKS
};
#define OPTIONS_HOOK_NAMES                                                             \
	{ "try_to_wake_up",                                                            \
	  "ttwu_do_activate",                                                          \
	  "finish_task_switch",                                                        \
	  "hrtimer_wakeup",                                                            \
	  "timerfd_tmrproc",                                                           \
	  "posix_timer_fn",                                                            \
	  "it_real_fn",                                                                \
	  "wake_up_new_task",                                                          \
	  "__set_task_comm",                                                           \
	  "do_exit",                                                                   \
	  "the function for system calls",                                             \
	  "handle_mm_fault",                                                           \
	  "__mutex_lock",                                                              \
	  "rwsem_down_read_slowpath",                                                  \
	  "rwsem_down_write_slowpath",                                                 \
	  "task_blocks_on_rt_mutex" }

/* Where a part of a wake-up begins or ends. */
enum options_place {
	PLACE_TIMERS,   /* hrtimer_interrupt() */
	PLACE_QUIT,     /* irq_exit_rcu() */
	PLACE_SCHEDULE, /* __schedule() */
	OPTIONS_PLACES
};

/* Of a task, unless something else is said; 0: not known, but for the offsets that are
 * not of a task. */
enum options_field {
	FIELD_PID,
	FIELD_TGID,
	FIELD_COMM,
	FIELD_PRIO,
	FIELD_STATE,
	FIELD_ON_RQ,
	FIELD_DELAYED, /* se.sched_delayed: it sleeps, though it is on the run queue */
	FIELD_BLOCKED, /* pi_blocked_on */
	FIELD_LOCK,    /* of lock in what that points to */
	FIELD_OWNER,   /* of owner in such a lock, */
	FIELD_MUTEX,   /* in a mutex, */
	FIELD_RWSEM,   /* and in a read-write semaphore */
	FIELD_AREA,    /* of vm_start in a memory area, */
	FIELD_AREA_END,
	OPTIONS_FIELDS
};

/* tk_core of kernel/time/timekeeping.c, and its tkr_mono; offsets in that, in a timer and
 * in the clock that it is of. */
enum options_time {
	TIME_CORE,   /* address of the sequence count */
	TIME_KEEPER, /* address of tkr_mono; 0: not known */
	TIME_LAST,   /* offset of cycle_last */
	TIME_MULT,
	TIME_SHIFT,
	TIME_XTIME, /* of xtime_nsec */
	TIME_NS,    /* of base */
	TIME_EXPIRES,
	TIME_FUNCTION, /* of function in a timer, */
	TIME_BASE,     /* of base in it, */
	TIME_OFFSET,   /* and of offset in that */
	TIME_TASK,     /* of task in the hrtimer_sleeper that begins with a timer */
	TIME_HZ,       /* of the counter */
	OPTIONS_TIMES
};

struct options {
	uint64_t quantum;
	const char *summary;
	const char *progress;
	const char *out; /* NULL: nothing is recorded */
	uint64_t shift;
	uint64_t worst;
	uint64_t ring;
	uint64_t room;
	struct window window[OPTIONS_WINDOWS];
	unsigned int windows;
	struct place task, preempt;
	const struct phase *phase;
	unsigned int phases;
	uint64_t schedule, idle, sleep, exit, due; /* schedule is 0: no sections */
	uint64_t switched;                         /* 0: not given */
	uint64_t first_task, wake, rename;         /* likewise */
	const char *program;                       /* NULL: no program is recorded */
	const char *code;                          /* NULL: nor what it executes */
	uint64_t code_units;                       /* of that file, at most */
	uint64_t hook[OPTIONS_HOOKS], field[OPTIONS_FIELDS], time[OPTIONS_TIMES];
	bool has_parts;
	uint64_t parts[OPTIONS_PLACES];
	uint64_t most;
	struct use use[OPTIONS_USES];
	unsigned int uses;
	uint64_t stacks, stack;
	struct window stacked; /* all times, if not given */
};

/* Returns NULL, or the argument that is wrong. What it points to must stay. */
const char *options_parse(int argc, char **argv, struct options *out);

#endif
