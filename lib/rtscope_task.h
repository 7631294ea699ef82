/* SPDX-License-Identifier: MIT */
/*
 * rtscope_task - periodic real-time tasks on Linux, which say what they could not have.
 *
 *	struct rtsc *app;
 *	struct rtsc_task *task;
 *	struct rtsc_report report = { 0 };
 *	struct rtsc_config config = { .name = "control", .policy = RTSC_POLICY_FIFO,
 *				      .priority = 80, .cpus = "1", .period_ns = 1000000 };
 *
 *	if (rtsc_open(&app, NULL, &report) ||
 *	    rtsc_start(app, &config, control, NULL, &task, &report)) {
 *		rtsc_report_print(&report, STDERR_FILENO);
 *		return 1;
 *	}
 *	rtsc_go(app);
 *	rtsc_join(task);
 *	rtsc_close(app);
 *
 * and
 *
 *	static void control(struct rtsc_task *task, void *arg)
 *	{
 *		struct rtsc_cycle cycle;
 *
 *		while (rtsc_wait(task, &cycle))
 *			...
 *	}
 *
 * Copy this file and rtscope_task.c; link with -pthread. C11 or C++11, Linux 4.14 or
 * later, glibc or musl. Times are nanoseconds of CLOCK_MONOTONIC. Functions return 0 or
 * -errno. rtsc_open(), rtsc_start(), rtsc_go(), rtsc_join() and rtsc_close() are for one
 * thread that is not real-time; in a task, rtsc_wait() and the mutex are bounded: no
 * memory is allocated and none is touched for the first time.
 */
#ifndef RTSCOPE_TASK_H
#define RTSCOPE_TASK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- what could not be had ------------------------------------------------------- */

enum rtsc_cause {
	RTSC_CAUSE_CAPABILITY,  /* a right is missing that root has */
	RTSC_CAUSE_RLIMIT,      /* a limit of the process is too small */
	RTSC_CAUSE_CGROUP,      /* the control group has no real-time run time */
	RTSC_CAUSE_SECCOMP,     /* a filter of system calls may forbid it */
	RTSC_CAUSE_BANDWIDTH,   /* admission control of SCHED_DEADLINE */
	RTSC_CAUSE_AFFINITY,    /* CPUs: absent, or too few for SCHED_DEADLINE */
	RTSC_CAUSE_THREADS,     /* other threads were there before rtsc_open() */
	RTSC_CAUSE_UNSUPPORTED, /* this C library or kernel cannot do it */
	RTSC_CAUSE_ARGUMENT,    /* the program asked for what does not exist */
	RTSC_CAUSE_SYSTEM,      /* anything else: err has the reason */
};

#define RTSC_TEXT_BYTES 320
#define RTSC_MAX_LACKS  16

struct rtsc_lack {
	char what[96]; /* "SCHED_FIFO 80 for task control" */
	enum rtsc_cause cause;
	int err; /* an errno; 0 if no call failed */
	char why[RTSC_TEXT_BYTES];
	char remedy[RTSC_TEXT_BYTES]; /* what to type; empty if nobody knows */
};

/* Begins as { 0 }; each call adds to it. */
struct rtsc_report {
	size_t lacks;    /* in lack[] */
	size_t left_out; /* more than fitted */
	struct rtsc_lack lack[RTSC_MAX_LACKS];
};

/* "capability", "rlimit", ...: stable words, for programs. */
const char *rtsc_cause_name(enum rtsc_cause cause);

/* One lack in three lines. */
void rtsc_report_print(const struct rtsc_report *report, int fd);

/* --- the process ----------------------------------------------------------------- */

struct rtsc;

#define RTSC_NONE SIZE_MAX

/* All zero: the defaults. */
struct rtsc_setup {
	/* Of malloc(), touched in advance: 8 MiB, or RTSC_NONE. What fits into it needs
	 * no page fault and no system call. */
	size_t heap_bytes;
	/* Of the calling thread, touched in advance: 256 KiB, or RTSC_NONE. */
	size_t main_stack_bytes;
	/* How many tasks can be started: 16. Each has 16 KiB of statistics. */
	size_t tasks;
	/* Do not lock memory, as where a debugger or valgrind runs the program. */
	bool unlocked;
	/* Keep statistics to the process: no file in /dev/shm. */
	bool private_statistics;
	/* Leave the file there at the end; after a crash it always stays. */
	bool keep_statistics;
};

/*
 * Locks memory, sets malloc() up, touches heap and stack, and makes the page of
 * statistics. Call it before the first thread is made. What could not be had is in the
 * report and is no error: test report->lacks. setup may be NULL.
 */
int rtsc_open(struct rtsc **out, const struct rtsc_setup *setup,
	      struct rtsc_report *report);

/* Stops and joins the tasks that are left. Memory stays locked. */
void rtsc_close(struct rtsc *app);

/* --- tasks ----------------------------------------------------------------------- */

enum rtsc_policy { /* the kernel's numbers */
		   RTSC_POLICY_OTHER = 0,
		   RTSC_POLICY_FIFO = 1,
		   RTSC_POLICY_RR = 2,
		   RTSC_POLICY_DEADLINE = 6,
};

/* When a cycle ends after the next release. */
enum rtsc_overrun {
	RTSC_OVERRUN_SKIP,     /* leave out the releases that passed; keep the grid */
	RTSC_OVERRUN_CATCH_UP, /* run them at once, one after the other; keep the grid */
	RTSC_OVERRUN_REBASE,   /* run at once; the grid begins anew there */
	RTSC_OVERRUN_STOP,     /* rtsc_wait() returns false */
};

/* What wakes a task that has no timer: something to read from config.event_fd. */
enum rtsc_event {
	RTSC_EVENT_NONE,     /* it is periodic */
	RTSC_EVENT_READABLE, /* a socket, GPIO line, pipe: the task has to read it */
	RTSC_EVENT_COUNTER,  /* an eventfd or timerfd: the library reads its counter */
};

/* A cycle that ended after its deadline. */
struct rtsc_miss {
	uint64_t number;
	int64_t release_ns, wake_ns, end_ns,
		deadline_ns; /* the deadline as configured */
};

struct rtsc_task;

/* Called by the task itself, in rtsc_wait(), at the end of the cycle: bounded, as the
 * cycle is. Without a call the cycle is counted all the same. */
typedef void rtsc_miss_function(struct rtsc_task *task, const struct rtsc_miss *miss,
				void *arg);

struct rtsc_config {
	const char *name; /* up to 15 characters are seen by ps and rtscope tasks */
	enum rtsc_policy policy;
	int priority;        /* FIFO, RR: 1 to 99 */
	int nice;            /* OTHER: -20 to 19 */
	int64_t runtime_ns;  /* DEADLINE: CPU time in each period */
	const char *cpus;    /* "3", "0,2-3"; NULL: as the caller */
	int64_t period_ns;   /* 0: not periodic, and rtsc_wait() returns false */
	int64_t offset_ns;   /* of its releases from those of the common epoch */
	int64_t deadline_ns; /* from the release to the end; 0: the period */
	enum rtsc_overrun overrun;
	size_t stack_bytes; /* 0: 256 KiB */
	/* Run it as SCHED_OTHER on any CPU where what is asked for is refused. */
	bool may_degrade;
	/* Woken by a descriptor: period_ns is for DEADLINE alone, and offset and overrun
	 * mean nothing. */
	enum rtsc_event event;
	int event_fd;
	int64_t event_timeout_ns;    /* longest sleep without an event; 0: for ever */
	rtsc_miss_function *on_miss; /* NULL: none */
	void *miss_arg;
};

typedef void rtsc_function(struct rtsc_task *task, void *arg);

/*
 * Makes the thread. It has its policy, priority and CPUs, read back from the kernel,
 * before the function is called. A refusal is an error, with its cause in the report,
 * unless the task may degrade.
 */
int rtsc_start(struct rtsc *app, const struct rtsc_config *config,
	       rtsc_function *function, void *arg, struct rtsc_task **out,
	       struct rtsc_report *report);

/*
 * Begins the common epoch: the releases of a task are at epoch + offset + k * period.
 * Until then tasks wait in their first rtsc_wait(). A task that is started later begins
 * with the next release of that grid.
 */
void rtsc_go(struct rtsc *app);

struct rtsc_cycle {
	uint64_t number;    /* of the release: 0, 1, ...; those left out are counted */
	int64_t release_ns; /* when it was due */
	int64_t wake_ns;    /* when it began */
	/* Releases left out right before this one; with RTSC_EVENT_COUNTER, events that
	 * came together with this one. */
	uint64_t skipped;
	bool late;      /* the last cycle ended after its deadline */
	bool timed_out; /* no event: event_timeout_ns is over */
};

/* Ends the cycle and sleeps until the next. False: asked to stop, or overrun with
 * RTSC_OVERRUN_STOP. Only by the task itself. */
bool rtsc_wait(struct rtsc_task *task, struct rtsc_cycle *cycle);

/*
 * Only by a task that is woken by events, once in a cycle: when the event happened, as a
 * GPIO line's time stamp says (CLOCK_MONOTONIC). It is the release of the cycle, for
 * its latency and response. Without it the release is the wake-up, and no latency is
 * counted: it is not known.
 */
void rtsc_event_time(struct rtsc_task *task, int64_t event_ns);

/* Asks a task to end; it sees that at its next rtsc_wait(). Safe from any thread and
 * from signal handlers. */
void rtsc_stop(struct rtsc_task *task);

/* Waits for its end. 0; -ETIME if it was stopped by an overrun; -EPIPE if nothing can be
 * read from its descriptor any more, or the error of that. */
int rtsc_join(struct rtsc_task *task);

/* --- a mutex with priority inheritance ------------------------------------------- */

/* Whoever holds it runs with the priority of the highest that waits. */
struct rtsc_mutex {
	pthread_mutex_t mutex;
};

int rtsc_mutex_init(struct rtsc_mutex *mutex);
int rtsc_mutex_lock(struct rtsc_mutex *mutex);    /* -EDEADLK: it has it already */
int rtsc_mutex_trylock(struct rtsc_mutex *mutex); /* -EBUSY: another has it */
int rtsc_mutex_unlock(struct rtsc_mutex *mutex);  /* -EPERM: it does not have it */
void rtsc_mutex_destroy(struct rtsc_mutex *mutex);

/* --- statistics ------------------------------------------------------------------ */

/*
 * The file /dev/shm/rtscope-task.PID: a header and a slot for each task, in words of 64
 * bits of the machine's byte order. Read it, or map it read-only: the tasks notice
 * nothing. The program holds a lock on it (flock) for as long as it lives.
 */
#define RTSC_DIR        "/dev/shm"
#define RTSC_PREFIX     "rtscope-task."
#define RTSC_MAGIC      UINT64_C(0x6b73617463737472) /* "rtsctask" where low is first */
#define RTSC_LAYOUT     UINT64_C(1)
#define RTSC_NAME_BYTES 32

/*
 * Below 2^RTSC_SUB_BITS ns each value has a bucket; above, each power of two has
 * 2^RTSC_SUB_BITS of them: a bucket spans at most 1/16 of the values in it. Nothing is
 * dropped: early counts values below 0, overflow those of 2^RTSC_MAX_BITS ns (17 s) or
 * more.
 */
#define RTSC_SUB_BITS 4
#define RTSC_MAX_BITS 34
#define RTSC_BUCKETS  ((RTSC_MAX_BITS - RTSC_SUB_BITS + 1) << RTSC_SUB_BITS)

struct rtsc_hist {
	uint64_t count; /* of all but the early ones */
	uint64_t early;
	uint64_t overflow;
	uint64_t min_ns; /* UINT64_MAX if there are none */
	uint64_t max_ns;
	uint64_t sum_ns; /* with its carry in sum_high */
	uint64_t sum_high;
	uint64_t reserved;
	uint64_t bucket[RTSC_BUCKETS];
};

enum rtsc_state {
	RTSC_STATE_FREE,
	RTSC_STATE_READY, /* has its policy, and waits for the epoch */
	RTSC_STATE_RUNNING,
	RTSC_STATE_ENDED,
	RTSC_STATE_OVERRAN, /* ended by RTSC_OVERRUN_STOP */
};

struct rtsc_slot {
	uint64_t sequence; /* odd while the task writes */
	uint64_t state;
	uint64_t tid;
	/* As read back from the kernel. */
	uint64_t policy;
	uint64_t priority;
	uint64_t runtime_ns;
	uint64_t dl_deadline_ns;
	uint64_t dl_period_ns;
	/* As configured. */
	uint64_t period_ns; /* 0: woken by events */
	uint64_t offset_ns;
	uint64_t deadline_ns;
	uint64_t overrun;
	/* Of cycles that have ended. A cycle that began without a sleep, late, is an
	 * overrun: latency.count + latency.early + overruns = cycles begun. Woken by events
	 * there are no overruns, and latencies of those alone whose time was told. */
	uint64_t cycles;
	uint64_t missed;   /* ended after their deadline */
	uint64_t overruns; /* began late: no sleep before them */
	uint64_t skipped;  /* releases left out */
	uint64_t minor_faults;
	uint64_t major_faults;
	uint64_t voluntary_switches;
	uint64_t involuntary_switches;
	uint64_t last_fault_cycle; /* see below; UINT64_MAX: no cycle had a fault */
	/* The cycle that began last. */
	uint64_t number;
	uint64_t release_ns;
	uint64_t wake_ns;
	uint64_t in_cycle; /* 1 from rtsc_wait() to rtsc_wait() */
	char name[RTSC_NAME_BYTES];
	/* Faults and switches are those of all cycles up to this one, whose end was at
	 * usage_ns. To count them is a system call, so that is done
	 *  - at the end of a cycle that is late, or the longest so far (response or
	 *    execution), and of the last one;
	 *  - else 100 ms after the last time, or at the first end of a cycle after that;
	 *  - for 100 ms after a page fault, at the end of each cycle. */
	uint64_t usage_cycle; /* its number; UINT64_MAX: none yet */
	uint64_t usage_ns;
	/* The last fault was in one of the cycles from here to last_fault_cycle. */
	uint64_t fault_since_cycle;
	struct rtsc_hist latency; /* from release to wake-up */
	struct rtsc_hist
		execution; /* CPU time; the kernel's to sleep and wake is in it */
	struct rtsc_hist response; /* from release to the end */
	struct rtsc_hist jitter;   /* between two starts, less than between releases */
};

struct rtsc_page {
	uint64_t magic;
	uint64_t layout;
	uint64_t header_bytes; /* where the first slot begins */
	uint64_t slot_bytes;
	uint64_t slots;
	uint64_t sub_bits;
	uint64_t max_bits;
	uint64_t pid;
	uint64_t opened_ns;
	uint64_t epoch_ns; /* 0: before rtsc_go() */
	uint64_t closed;   /* 1 after rtsc_close() */
	uint64_t reserved[5];
	char program[64];
	char padding[4096 - 192];
};

/* The statistics of a task, as it writes them; to be read by rtsc_snapshot(). */
const struct rtsc_slot *rtsc_statistics(const struct rtsc_task *task);

/* Copies statistics as they were at one time. False: the task wrote all the while, or
 * died while it did. Of this process, or of a file that is mapped. */
bool rtsc_snapshot(const struct rtsc_slot *from, struct rtsc_slot *out);

/* Smallest value of a bucket. */
uint64_t rtsc_bucket_low_ns(unsigned int bucket);

#ifdef __cplusplus
}
#endif
#endif
