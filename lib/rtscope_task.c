/* SPDX-License-Identifier: MIT */
/*
 * rtscope_task - see rtscope_task.h. One file, to be copied into a program: what locks
 * memory, makes threads and explains refusals runs before the tasks; rtsc_wait() and
 * what it calls run in them.
 *
 * With RTSC_TEST, clock, sleep, refusals and the files of the machine come from a test.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "rtscope_task.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HEAP_BYTES       ((size_t)8 << 20)
#define MAIN_STACK_BYTES ((size_t)256 << 10)
#define TASK_STACK_BYTES ((size_t)256 << 10)
#define TASKS            16
#define PAGE_BYTES       4096 /* the smallest there is: every page is touched */
#define STACK_MARGIN     (4 * PAGE_BYTES) /* guard page, and the last touching frame */
#define LEAD_NS          INT64_C(5000000) /* rtsc_go(): all tasks sleep by the epoch */
#define SNAPSHOT_TRIES   1000
#define LOOK_NS          INT64_C(100000000) /* from one getrusage() to the next */
#define CAP_IPC_LOCK     14
#define CAP_SYS_NICE     23
#define RESET_ON_FORK    1 /* SCHED_FLAG_RESET_ON_FORK: a DEADLINE thread may fork */
#define NS_PER_S         INT64_C(1000000000)

/* gcc and clang have the __atomic builtins; C11's atomics are no C++. */
#if __GCC_ATOMIC_LLONG_LOCK_FREE != 2
#error "a task would take a hidden lock for each 64-bit counter: compile for ARMv7 or later"
#endif

/* Keeps the common path of a cycle straight. */
#define RARELY(condition) __builtin_expect(!!(condition), 0)
#define ALWAYS_INLINE     inline __attribute__((always_inline))

typedef char rtsc_page_is_its_size[sizeof(struct rtsc_page) == 4096 ? 1 : -1];
typedef char rtsc_slot_is_its_size[sizeof(struct rtsc_slot) == 16384 ? 1 : -1];

/* SCHED_ATTR_SIZE_VER0 of the kernel; libc before glibc 2.41 has it not. */
struct rtsc_attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

/* What a thread has had since its start. */
struct rtsc_usage {
	uint64_t minor_faults, major_faults, voluntary_switches, involuntary_switches;
};

struct rtsc_task {
	struct rtsc *app;
	struct rtsc_slot *slot;
	struct rtsc_config config;
	rtsc_function *function;
	void *arg;
	pthread_t thread;
	int err;                   /* of its start */
	struct rtsc_report report; /* of the thread itself, until `ready` */
	uint32_t ready;            /* a futex: 1 when it has its policy, or err */
	uint32_t stop;
	bool joined;
	int stop_fd;   /* an eventfd that ends its sleep; -1: it is periodic */
	bool is_timed; /* the time of this cycle's event was told */
	/* The task's own. */
	bool released;       /* it knows its first release */
	int64_t base_ns;     /* of the grid: of release 0 */
	uint64_t next;       /* number of the next release on it */
	int64_t cpu_ns;      /* at the end of the last cycle */
	int64_t usual_ns;    /* no cycle that ends by then is late or an overrun */
	int64_t look_ns;     /* when its faults and switches are to be counted next */
	int64_t watch_ns;    /* until when they are at the end of each cycle */
	uint64_t usage_from; /* the first cycle whose faults are not counted yet */
	struct rtsc_usage usage;
};

struct rtsc {
	struct rtsc_page *page;
	size_t page_bytes;
	char path[128]; /* "" without a file */
	int fd;
	uint32_t gone; /* a futex: 1 after rtsc_go() */
	bool keep;
	size_t capacity, started;
	struct rtsc_task *task;
};

/* --- the system calls of a cycle -------------------------------------------------- */

/*
 * Without libc, whose wrappers execute 30 to 40 instructions for each: clock_gettime()
 * first asks the vDSO, which never has a thread's CPU time, and clock_nanosleep() is a
 * cancellation point. Elsewhere they go through libc.
 */
#if defined(__LP64__) &&                                                               \
	(defined(__x86_64__) || defined(__aarch64__) || defined(__riscv))
#define RAW_CALLS 1

/* What the kernel returns: -errno on failure. */
static ALWAYS_INLINE long raw_call(long number, long a, long b, const void *c)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = 0;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = (long)c;
	register long x3 __asm__("x3") = 0;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
			 : "memory");
	return x0;
#else
	register long a7 __asm__("a7") = number;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = (long)c;
	register long a3 __asm__("a3") = 0;

	__asm__ volatile("ecall"
			 : "+r"(a0)
			 : "r"(a7), "r"(a1), "r"(a2), "r"(a3)
			 : "memory");
	return a0;
#endif
}
#else
#define RAW_CALLS 0
#endif

/* --- what a test replaces -------------------------------------------------------- */

static int64_t timespec_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * NS_PER_S + t->tv_nsec;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return timespec_ns(&t);
}

static int64_t monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static int64_t thread_cpu_ns(void)
{
#if RAW_CALLS
	struct timespec t;

	raw_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&t, NULL);
	return timespec_ns(&t);
#else
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
#endif
}

/* 0, or -errno; a system call, which costs as much as all else in a cycle. */
static int thread_usage(struct rtsc_usage *out)
{
	struct rusage u;

	if (getrusage(RUSAGE_THREAD, &u) < 0)
		return -errno;
	out->minor_faults = (uint64_t)u.ru_minflt;
	out->major_faults = (uint64_t)u.ru_majflt;
	out->voluntary_switches = (uint64_t)u.ru_nvcsw;
	out->involuntary_switches = (uint64_t)u.ru_nivcsw;
	return 0;
}

/* 0, or EINTR. */
static int sleep_until_ns(int64_t until_ns)
{
	struct timespec t;

	/* unsigned: the compiler's division by a constant is shorter */
	t.tv_sec = (time_t)((uint64_t)until_ns / (uint64_t)NS_PER_S);
	t.tv_nsec = (long)((uint64_t)until_ns % (uint64_t)NS_PER_S);
#if RAW_CALLS
	return (int)-raw_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &t);
#else
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
#endif
}

/* Raw: musl's sched_setscheduler() is a stub, and old libcs have no sched_setattr(). */
static int set_attr(const struct rtsc_attr *attr)
{
	return syscall(SYS_sched_setattr, 0, attr, 0) < 0 ? -errno : 0;
}

static int lock_memory(void)
{
	return mlockall(MCL_CURRENT | MCL_FUTURE) < 0 ? -errno : 0;
}

/* ULONG_MAX: unlimited. */
static unsigned long limit_of(int resource)
{
	uint64_t limit[2] = { UINT64_MAX, UINT64_MAX }; /* soft and hard */

	/* raw: glibc's getrlimit() has an enum of its own, which differs in C and C++ */
	syscall(SYS_prlimit64, 0, resource, NULL, limit);
	return limit[0] < ULONG_MAX ? (unsigned long)limit[0] : ULONG_MAX;
}

#ifdef RTSC_TEST
static
#else
static const
#endif
	struct rtsc_seam {
	const char *root; /* of /proc, /sys and /dev */
	int64_t (*now_ns)(void);
	int64_t (*cpu_ns)(void);
	int (*usage)(struct rtsc_usage *);
	int (*sleep_until)(int64_t);
	int (*set_attr)(const struct rtsc_attr *);
	int (*lock_memory)(void);
	unsigned long (*limit)(int resource);
} seam = { "",       monotonic_ns, thread_cpu_ns, thread_usage, sleep_until_ns,
	   set_attr, lock_memory,  limit_of };

/* --- the report ------------------------------------------------------------------ */

const char *rtsc_cause_name(enum rtsc_cause cause)
{
	static const char *const names[] = { "capability", "rlimit",      "cgroup",
					     "seccomp",    "bandwidth",   "affinity",
					     "threads",    "unsupported", "argument",
					     "system" };

	return (size_t)cause < sizeof(names) / sizeof(names[0]) ? names[cause]
								: "system";
}

void rtsc_report_print(const struct rtsc_report *report, int fd)
{
	for (size_t i = 0; i < report->lacks; i++) {
		const struct rtsc_lack *l = &report->lack[i];

		dprintf(fd, "not had: %s%s%s\n  because (%s): %s\n", l->what,
			l->err ? ": " : "", l->err ? strerror(l->err) : "",
			rtsc_cause_name(l->cause), l->why);
		if (l->remedy[0])
			dprintf(fd, "  type: %s\n", l->remedy);
	}
	if (report->left_out)
		dprintf(fd, "and %zu more\n", report->left_out);
}

/* A place for one more, cause RTSC_CAUSE_SYSTEM; the last one again when it is full. */
static struct rtsc_lack *lack_of(struct rtsc_report *report, int err, const char *what)
{
	struct rtsc_lack *l;

	if (report->lacks == RTSC_MAX_LACKS) {
		report->left_out++;
		l = &report->lack[RTSC_MAX_LACKS - 1];
	} else {
		l = &report->lack[report->lacks++];
	}
	memset(l, 0, sizeof(*l));
	l->cause = RTSC_CAUSE_SYSTEM;
	l->err = err;
	snprintf(l->what, sizeof(l->what), "%s", what);
	return l;
}

__attribute__((format(printf, 4, 5))) static void because(struct rtsc_lack *l,
							  enum rtsc_cause cause,
							  const char *remedy,
							  const char *why, ...)
{
	va_list args;

	l->cause = cause;
	snprintf(l->remedy, sizeof(l->remedy), "%s", remedy);
	va_start(args, why);
	vsnprintf(l->why, sizeof(l->why), why, args);
	va_end(args);
}

static void append_report(struct rtsc_report *to, const struct rtsc_report *from)
{
	for (size_t i = 0; i < from->lacks; i++)
		*lack_of(to, 0, "") = from->lack[i];
	to->left_out += from->left_out;
}

/* --- why the kernel refuses ------------------------------------------------------ */

/* The start of a file as text; "" if it cannot be read. */
static const char *slurp(const char *path, char *text, size_t size)
{
	char whole[PATH_MAX];
	ssize_t n = -1;
	int fd;

	snprintf(whole, sizeof(whole), "%s%s", seam.root, path);
	fd = open(whole, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* The text after "KEY:" in /proc/thread-self/status; NULL if there is none. */
static const char *status_value(const char *key, char *text, size_t size)
{
	const char *line = slurp("/proc/thread-self/status", text, size);

	for (; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
			return line + strlen(key) + 1;
	}
	return NULL;
}

static bool has_capability(int number)
{
	char text[4096];
	const char *value = status_value("CapEff", text, sizeof(text));

	return value && (strtoull(value, NULL, 16) >> number & 1);
}

/* In another user namespace than the first, capabilities count for nothing here. */
static bool in_user_namespace(void)
{
	char text[256];
	unsigned long inside, outside, count;

	return sscanf(slurp("/proc/self/uid_map", text, sizeof(text)), "%lu %lu %lu",
		      &inside, &outside, &count) == 3 &&
	       count != 4294967295;
}

/* The path of this process in the hierarchy of "cpu" (v1) or "" (v2); false: in none. */
static bool cgroup_path(const char *controller, char *path, size_t size)
{
	char text[4096];
	size_t length = strlen(controller);

	for (char *line = (char *)slurp("/proc/self/cgroup", text, sizeof(text));
	     *line;) {
		char *end = line + strcspn(line, "\n");
		char *name = strchr(line, ':');
		char *last = name ? strchr(name + 1, ':') : NULL;
		char *found;

		if (last && last < end) {
			/* a whole word of "cpu,cpuacct" */
			for (found = name + 1; found < last;
			     found += strcspn(found, ",:") + 1)
				if (strncmp(found, controller, length) == 0 &&
				    strchr(",:", found[length]))
					break;
			if (found < last || (length == 0 && name + 1 == last)) {
				snprintf(path, size, "%.*s", (int)(end - last - 1),
					 last + 1);
				return true;
			}
		}
		line = end + (*end == '\n');
	}
	return false;
}

/* Whether its cgroup has no real-time run time: RT_GROUP_SCHED then refuses even root. */
static bool group_without_runtime(char *where, size_t size)
{
	static const char *const mounts[] = { "/sys/fs/cgroup/cpu",
					      "/sys/fs/cgroup/cpu,cpuacct" };
	char group[256], value[32];

	if (!cgroup_path("cpu", group, sizeof(group)))
		return false;
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		snprintf(where, size, "%s%s/cpu.rt_runtime_us", mounts[i], group);
		if (slurp(where, value, sizeof(value))[0] && atol(value) == 0)
			return true;
	}
	return false;
}

static void explain_right(struct rtsc_lack *l, const struct rtsc_config *c)
{
	unsigned long limit = seam.limit(RLIMIT_RTPRIO);
	char remedy[RTSC_TEXT_BYTES];

	if (c->policy == RTSC_POLICY_OTHER) {
		because(l, RTSC_CAUSE_RLIMIT,
			"sudo setcap cap_sys_nice+ep PROGRAM; in a unit: LimitNICE=-20",
			"RLIMIT_NICE is %lu, and the process lacks CAP_SYS_NICE",
			seam.limit(RLIMIT_NICE));
	} else if (c->policy != RTSC_POLICY_DEADLINE && limit > 0) {
		snprintf(remedy, sizeof(remedy),
			 "ulimit -r %d; for good: rtprio in /etc/security/limits.d, or "
			 "LimitRTPRIO=%d in a unit",
			 c->priority, c->priority);
		because(l, RTSC_CAUSE_RLIMIT, remedy,
			"RLIMIT_RTPRIO allows priorities up to %lu, and the process "
			"lacks CAP_SYS_NICE",
			limit);
	} else {
		because(l, RTSC_CAUSE_CAPABILITY,
			"sudo setcap cap_sys_nice+ep PROGRAM; in a container: "
			"--cap-add "
			"SYS_NICE; in a unit: AmbientCapabilities=CAP_SYS_NICE",
			"the process lacks CAP_SYS_NICE%s",
			c->policy == RTSC_POLICY_DEADLINE
				? ", and no limit allows SCHED_DEADLINE without it"
				: ", and RLIMIT_RTPRIO is 0");
	}
}

static void explain_group(struct rtsc_lack *l, const struct rtsc_config *c)
{
	char where[512], status[4096], group[256], remedy[RTSC_TEXT_BYTES];
	const char *seccomp;

	if (c->policy != RTSC_POLICY_DEADLINE &&
	    group_without_runtime(where, sizeof(where))) {
		snprintf(remedy, sizeof(remedy), "echo 100000 | sudo tee %.200s",
			 where);
		because(l, RTSC_CAUSE_CGROUP, remedy,
			"the kernel has RT_GROUP_SCHED, and %.200s is 0: that refuses "
			"even root",
			where);
		return;
	}
	seccomp = status_value("Seccomp", status, sizeof(status));
	if (seccomp && atoi(seccomp) > 0)
		because(l, RTSC_CAUSE_SECCOMP,
			"in a container: --security-opt seccomp=unconfined; in a unit: "
			"SystemCallFilter=@resources, and no RestrictRealtime=yes",
			"the process has CAP_SYS_NICE, and a seccomp filter may forbid "
			"it");
	else if (cgroup_path("", group, sizeof(group)) && strcmp(group, "/") != 0)
		because(l, RTSC_CAUSE_CGROUP,
			"boot with rt_group_sched=0, or move the process to the root "
			"cgroup: echo PID | sudo tee /sys/fs/cgroup/cgroup.procs",
			"the process has CAP_SYS_NICE; cgroup %.200s of version 2 "
			"cannot "
			"have real-time run time if the kernel has RT_GROUP_SCHED",
			group);
}

/* "0,2-3" and perhaps a newline; -EINVAL for anything else. */
static int parse_cpus(const char *text, cpu_set_t *set)
{
	CPU_ZERO(set);
	do {
		char *end;
		unsigned long low, high;

		if (!isdigit((unsigned char)*text))
			return -EINVAL;
		low = high = strtoul(text, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			high = strtoul(end + 1, &end, 10);
		if (high < low || high >= CPU_SETSIZE)
			return -EINVAL;
		for (; low <= high; low++)
			CPU_SET(low, set);
		text = end;
	} while (*text++ == ',');
	return text[-1] == '\0' || text[-1] == '\n' ? 0 : -EINVAL;
}

/* Not sysconf(): musl counts those that the thread is allowed on. */
static int online_cpus(void)
{
	char text[4096];
	cpu_set_t set;

	slurp("/sys/devices/system/cpu/online", text, sizeof(text));
	return parse_cpus(text, &set) ? 1 : CPU_COUNT(&set);
}

static void explain_deadline(struct rtsc_lack *l, const struct rtsc_config *c)
{
	char period[32], runtime[32];
	cpu_set_t set;

	if (l->err == EBUSY) {
		slurp("/proc/sys/kernel/sched_rt_period_us", period, sizeof(period));
		slurp("/proc/sys/kernel/sched_rt_runtime_us", runtime, sizeof(runtime));
		because(l, RTSC_CAUSE_BANDWIDTH,
			"rtscope tasks --rt (lists what SCHED_DEADLINE threads have)",
			"admission control: the task asks for %.1f %% of a CPU, and "
			"all "
			"SCHED_DEADLINE threads together may have %.0f %% of each",
			100.0 * (double)c->runtime_ns / (double)c->period_ns,
			100.0 * atof(runtime) /
				(atof(period) > 0 ? atof(period) : 1e6));
	} else if (l->err == EPERM && sched_getaffinity(0, sizeof(set), &set) == 0 &&
		   CPU_COUNT(&set) < online_cpus()) {
		because(l, RTSC_CAUSE_AFFINITY,
			"leave config.cpus and taskset out, or give it an exclusive "
			"cpuset: echo root | sudo tee "
			"/sys/fs/cgroup/GROUP/cpuset.cpus.partition",
			"a SCHED_DEADLINE thread must be allowed on every CPU of its "
			"root "
			"domain: it is allowed on %d of %d",
			CPU_COUNT(&set), online_cpus());
	} else if (l->err == EINVAL) {
		because(l, RTSC_CAUSE_ARGUMENT,
			"grep . /proc/sys/kernel/sched_deadline_period_*",
			"the kernel wants 1024 ns <= runtime <= deadline <= period, "
			"and a "
			"period within its limits (100 us to 4.2 s)");
	}
}

/* Names the cause of l->err, which sched_setattr() gave to this thread. */
static void explain_policy(struct rtsc_lack *l, const struct rtsc_config *c)
{
	if (l->err == EPERM && in_user_namespace())
		because(l, RTSC_CAUSE_CAPABILITY,
			"run it outside of the rootless container, or: ulimit -r 99",
			"the process is in a user namespace, where CAP_SYS_NICE does "
			"not "
			"count");
	else if ((l->err == EPERM || l->err == EACCES) && !has_capability(CAP_SYS_NICE))
		explain_right(l, c);
	else if (c->policy == RTSC_POLICY_DEADLINE && l->err != ENOSYS)
		explain_deadline(l, c);
	else if (l->err == EINVAL)
		because(l, RTSC_CAUSE_ARGUMENT, "chrt -m",
			"no such priority: SCHED_FIFO and SCHED_RR have 1 to 99");
	if (l->err == EPERM && l->cause == RTSC_CAUSE_SYSTEM)
		explain_group(l, c);
}

static void explain_memory(struct rtsc_lack *l)
{
	unsigned long limit = seam.limit(RLIMIT_MEMLOCK);

	if (limit != ULONG_MAX && !has_capability(CAP_IPC_LOCK))
		because(l, RTSC_CAUSE_RLIMIT,
			"ulimit -l unlimited; for good: memlock in "
			"/etc/security/limits.d, LimitMEMLOCK=infinity in a unit, or "
			"sudo setcap cap_ipc_lock+ep PROGRAM",
			"RLIMIT_MEMLOCK is %lu KiB, and the process lacks CAP_IPC_LOCK",
			limit >> 10);
}

/* --- memory ---------------------------------------------------------------------- */

/* Downward until a frame lies below `until`; not a tail call, which would use no stack. */
__attribute__((noinline)) static char touch_stack(const char *until)
{
	volatile char block[PAGE_BYTES];

	block[0] = 1;
	block[PAGE_BYTES - 1] = 1;
	if ((const char *)block > until)
		block[0] = touch_stack(until);
	return block[0];
}

static void touch_main_stack(size_t bytes, struct rtsc_report *report)
{
	unsigned long limit = seam.limit(RLIMIT_STACK);

	if (bytes > limit / 2) {
		because(lack_of(report, 0, "main stack touched in advance"),
			RTSC_CAUSE_RLIMIT, "ulimit -s unlimited",
			"%zu KiB are more than half of RLIMIT_STACK (%lu KiB)",
			bytes >> 10, limit >> 10);
		return;
	}
	touch_stack((const char *)__builtin_frame_address(0) - bytes);
}

static void touch_own_stack(void)
{
	pthread_attr_t attr;
	void *low;
	size_t size;

	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	if (pthread_attr_getstack(&attr, &low, &size) == 0)
		touch_stack((const char *)low + STACK_MARGIN);
	pthread_attr_destroy(&attr);
}

#ifdef __GLIBC__
/* Without M_ARENA_MAX=1 each thread gets an arena of its own at its first malloc():
 * mmap, munmap, mprotect and faults in the middle of a cycle. */
static bool set_malloc(void)
{
	return mallopt(M_ARENA_MAX, 1) && mallopt(M_TRIM_THRESHOLD, -1) &&
	       mallopt(M_MMAP_MAX, 0);
}
#else
static bool set_malloc(void)
{
	return false;
}
#endif

static void fill_heap(size_t bytes, bool keeps, struct rtsc_report *report)
{
	volatile char *heap;
	char text[4096];
	const char *threads = status_value("Threads", text, sizeof(text));

	if (!keeps) {
		because(lack_of(report, 0, "heap without system calls and page faults"),
			RTSC_CAUSE_UNSUPPORTED, "",
			"this C library's malloc() cannot be told to keep memory: do "
			"not "
			"call it in tasks");
		return;
	}
	if (threads && atoi(threads) > 1)
		because(lack_of(report, 0, "one heap for all threads"),
			RTSC_CAUSE_THREADS,
			"call rtsc_open() first in main(), or set "
			"MALLOC_ARENA_MAX=1 in the environment",
			"%d threads were there before: those that called malloc() keep "
			"an arena of their own",
			atoi(threads) - 1);
	heap = (volatile char *)malloc(bytes);
	if (!heap) {
		struct rtsc_lack *l = lack_of(report, ENOMEM, "heap");

		because(l, RTSC_CAUSE_SYSTEM, "", "%zu KiB cannot be had", bytes >> 10);
		explain_memory(l);
		return;
	}
	for (size_t i = 0; i < bytes; i += PAGE_BYTES)
		heap[i] = 1;
	free((void *)heap);
}

static void hold_memory(const struct rtsc_setup *setup, struct rtsc_report *report)
{
	size_t heap = setup->heap_bytes ? setup->heap_bytes : HEAP_BYTES;
	size_t stack =
		setup->main_stack_bytes ? setup->main_stack_bytes : MAIN_STACK_BYTES;
	int err = setup->unlocked ? 0 : seam.lock_memory();
	bool keeps = set_malloc();

	if (err)
		explain_memory(lack_of(report, -err, "locked memory"));
	if (heap != RTSC_NONE)
		fill_heap(heap, keeps, report);
	if (stack != RTSC_NONE)
		touch_main_stack(stack, report);
}

/* --- the page of statistics ------------------------------------------------------ */

static uint64_t peek(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* release: who acquires a new word in rtsc_snapshot() then sees the odd sequence; no
 * fences, which the thread sanitizer does not know. */
static void put(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* One writer, so load and store do the work of a costlier exchange. */
static void add(uint64_t *word, uint64_t n)
{
	put(word, peek(word) + n);
}

static void begin_write(struct rtsc_slot *s)
{
	__atomic_store_n(&s->sequence, peek(&s->sequence) + 1, __ATOMIC_RELAXED);
}

static void end_write(struct rtsc_slot *s)
{
	add(&s->sequence, 1);
}

bool rtsc_snapshot(const struct rtsc_slot *from, struct rtsc_slot *out)
{
	const uint64_t *word = (const uint64_t *)from;
	uint64_t *to = (uint64_t *)out;

	for (int tries = 0; tries < SNAPSHOT_TRIES; tries++) {
		/* acquire: pairs with the release of the even sequence, and below with
		 * that of each word */
		uint64_t before = __atomic_load_n(&from->sequence, __ATOMIC_ACQUIRE);

		for (size_t i = 0; i < sizeof(*out) / sizeof(*to); i++)
			to[i] = __atomic_load_n(&word[i], __ATOMIC_ACQUIRE);
		if (!(before & 1) && peek(&from->sequence) == before)
			return true;
	}
	return false;
}

static unsigned int bucket_of(uint64_t ns)
{
	/* below 2^RTSC_SUB_BITS the shift is 0 as above it: no branch */
	unsigned int high =
		63 ^ (unsigned int)__builtin_clzll(ns | 1u << RTSC_SUB_BITS);
	unsigned int shift = high - RTSC_SUB_BITS;

	return (shift << RTSC_SUB_BITS) + (unsigned int)(ns >> shift);
}

uint64_t rtsc_bucket_low_ns(unsigned int bucket)
{
	const unsigned int sub = 1u << RTSC_SUB_BITS;

	if (bucket < 2 * sub)
		return bucket;
	return (uint64_t)((bucket & (sub - 1)) + sub)
	       << ((bucket >> RTSC_SUB_BITS) - 1);
}

static void hist_init(struct rtsc_hist *h)
{
	put(&h->min_ns, UINT64_MAX);
}

/* Whether it is the largest value so far. */
static ALWAYS_INLINE bool hist_add(struct rtsc_hist *h, int64_t value_ns)
{
	uint64_t ns = (uint64_t)value_ns, sum_ns;
	bool largest = false;

	if (RARELY(ns >> RTSC_MAX_BITS)) {
		if (value_ns < 0) {
			add(&h->early, 1);
			return false;
		}
		add(&h->overflow, 1);
	} else {
		add(&h->bucket[bucket_of(ns)], 1);
	}
	add(&h->count, 1);
	sum_ns = h->sum_ns + ns;
	put(&h->sum_ns, sum_ns);
	if (RARELY(sum_ns < ns))
		add(&h->sum_high, 1);
	if (RARELY(ns < h->min_ns))
		put(&h->min_ns, ns);
	if (RARELY(ns > h->max_ns)) {
		put(&h->max_ns, ns);
		largest = true;
	}
	return largest;
}

/* A file that only this process writes, locked for its life; -errno. */
static int open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0 && errno == EEXIST) {
		/* of a crashed process that had this number: nobody holds its lock */
		int old = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (old < 0)
			return -errno;
		if (flock(old, LOCK_EX | LOCK_NB) < 0) {
			close(old);
			return -EBUSY;
		}
		unlink(path);
		close(old);
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			  0644);
	}
	if (fd < 0)
		return -errno;
	return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : fd;
}

static int map_file(struct rtsc *app)
{
	int err = 0;

	snprintf(app->path, sizeof(app->path), "%.64s" RTSC_DIR "/" RTSC_PREFIX "%d",
		 seam.root, (int)getpid());
	app->fd = open_file(app->path);
	if (app->fd < 0) {
		err = app->fd;
		app->path[0] = '\0';
		return err;
	}
	/* allocated now: a full tmpfs would be SIGBUS in a cycle */
	err = -posix_fallocate(app->fd, 0, (off_t)app->page_bytes);
	if (err) {
		unlink(app->path);
		app->path[0] = '\0';
	}
	return err;
}

static int make_page(struct rtsc *app, bool is_private, struct rtsc_report *report)
{
	int err = is_private ? 0 : map_file(app);
	int fd = app->path[0] ? app->fd : -1;
	char text[64];
	void *page;

	if (err)
		because(lack_of(report, -err, "statistics that others can read"),
			RTSC_CAUSE_SYSTEM, "ls -l " RTSC_DIR "; df " RTSC_DIR,
			"a file in " RTSC_DIR " cannot be made%s",
			err == -EBUSY ? ": another process has its name and lives"
				      : "");
	page = mmap(NULL, app->page_bytes, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_POPULATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
	if (page == MAP_FAILED) {
		err = -errno;
		explain_memory(lack_of(report, -err, "page of statistics"));
		return err;
	}
	app->page = (struct rtsc_page *)page;
	app->page->layout = RTSC_LAYOUT;
	app->page->header_bytes = sizeof(struct rtsc_page);
	app->page->slot_bytes = sizeof(struct rtsc_slot);
	app->page->slots = app->capacity;
	app->page->sub_bits = RTSC_SUB_BITS;
	app->page->max_bits = RTSC_MAX_BITS;
	app->page->pid = (uint64_t)getpid();
	app->page->opened_ns = (uint64_t)seam.now_ns();
	snprintf(app->page->program, sizeof(app->page->program), "%s",
		 slurp("/proc/self/comm", text, sizeof(text)));
	app->page->program[strcspn(app->page->program, "\n")] = '\0';
	/* last: who finds it finds the rest */
	put(&app->page->magic, RTSC_MAGIC);
	return 0;
}

static struct rtsc_slot *slot_at(struct rtsc *app, size_t i)
{
	return (struct rtsc_slot *)((char *)app->page + sizeof(struct rtsc_page)) + i;
}

int rtsc_open(struct rtsc **out, const struct rtsc_setup *setup,
	      struct rtsc_report *report)
{
	struct rtsc_setup defaults;
	struct rtsc *app = (struct rtsc *)calloc(1, sizeof(*app));
	int err;

	memset(&defaults, 0, sizeof(defaults));
	if (!setup)
		setup = &defaults;
	*out = NULL;
	if (!app)
		return -ENOMEM;
	app->fd = -1;
	app->keep = setup->keep_statistics;
	app->capacity = setup->tasks ? setup->tasks : TASKS;
	app->page_bytes =
		sizeof(struct rtsc_page) + app->capacity * sizeof(struct rtsc_slot);
	app->task = (struct rtsc_task *)calloc(app->capacity, sizeof(*app->task));
	if (!app->task) {
		free(app);
		return -ENOMEM;
	}
	hold_memory(setup, report);
	err = make_page(app, setup->private_statistics, report);
	if (err) {
		rtsc_close(app);
		return err;
	}
	*out = app;
	return 0;
}

void rtsc_close(struct rtsc *app)
{
	for (size_t i = 0; i < app->started; i++)
		rtsc_stop(&app->task[i]);
	rtsc_go(app); /* for those that wait for it: they end without a cycle */
	for (size_t i = 0; i < app->started; i++)
		rtsc_join(&app->task[i]);
	if (app->page) {
		put(&app->page->closed, 1);
		munmap(app->page, app->page_bytes);
	}
	if (app->path[0] && !app->keep)
		unlink(app->path);
	if (app->fd >= 0)
		close(app->fd);
	free(app->task);
	free(app);
}

/* --- starting a task ------------------------------------------------------------- */

static void futex_wait(uint32_t *word)
{
	/* acquire: pairs with the release in futex_open() */
	while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, word, 128 /* FUTEX_WAIT_PRIVATE */, 0, NULL, NULL,
			0);
}

static void futex_open(uint32_t *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, 129 /* FUTEX_WAKE_PRIVATE */, INT_MAX, NULL, NULL, 0);
}

static void take_cpus(struct rtsc_task *t)
{
	const char *cpus = t->config.cpus;
	cpu_set_t wanted, got;
	char what[96];
	int err;

	snprintf(what, sizeof(what), "CPUs %.40s for task %.32s", cpus, t->config.name);
	err = parse_cpus(cpus, &wanted);
	if (err) {
		because(lack_of(&t->report, EINVAL, what), RTSC_CAUSE_ARGUMENT, "",
			"write CPUs as \"3\" or \"0,2-3\"");
	} else if (sched_setaffinity(0, sizeof(wanted), &wanted) < 0) {
		err = -errno;
		because(lack_of(&t->report, -err, what), RTSC_CAUSE_AFFINITY,
			"cat /sys/devices/system/cpu/online; grep Cpus_allowed_list "
			"/proc/self/status",
			"none of them is online and in the cpuset of the process");
	} else if (sched_getaffinity(0, sizeof(got), &got) == 0 &&
		   !CPU_EQUAL(&got, &wanted)) {
		err = -ENODEV;
		because(lack_of(&t->report, ENODEV, what), RTSC_CAUSE_AFFINITY,
			"cat /sys/devices/system/cpu/online; grep Cpus_allowed_list "
			"/proc/self/status",
			"only %d of %d are online and in the cpuset of the process",
			CPU_COUNT(&got), CPU_COUNT(&wanted));
	}
	if (err)
		t->err = err;
}

static const char *policy_text(const struct rtsc_config *c, char *text, size_t size)
{
	switch (c->policy) {
	case RTSC_POLICY_FIFO:
		snprintf(text, size, "SCHED_FIFO %d", c->priority);
		break;
	case RTSC_POLICY_RR:
		snprintf(text, size, "SCHED_RR %d", c->priority);
		break;
	case RTSC_POLICY_DEADLINE:
		snprintf(text, size, "SCHED_DEADLINE");
		break;
	case RTSC_POLICY_OTHER:
		snprintf(text, size, "SCHED_OTHER, nice %d", c->nice);
		break;
	}
	return text;
}

static bool is_as_wanted(const struct rtsc_attr *got, const struct rtsc_attr *wanted)
{
	return got->policy == wanted->policy && got->priority == wanted->priority &&
	       (got->policy != RTSC_POLICY_OTHER || got->nice == wanted->nice) &&
	       got->runtime_ns * (got->policy == RTSC_POLICY_DEADLINE) ==
		       wanted->runtime_ns;
}

static void take_policy(struct rtsc_task *t)
{
	const struct rtsc_config *c = &t->config;
	struct rtsc_attr attr, got;
	char what[96], name[40];
	int err;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.policy = (uint32_t)c->policy;
	if (c->policy == RTSC_POLICY_OTHER)
		attr.nice = c->nice;
	else if (c->policy != RTSC_POLICY_DEADLINE)
		attr.priority = (uint32_t)c->priority;
	if (c->policy == RTSC_POLICY_DEADLINE) {
		attr.flags = RESET_ON_FORK;
		attr.runtime_ns = (uint64_t)c->runtime_ns;
		attr.deadline_ns = (uint64_t)c->deadline_ns;
		attr.period_ns = (uint64_t)c->period_ns;
	}
	err = seam.set_attr(&attr);
	memset(&got, 0, sizeof(got));
	syscall(SYS_sched_getattr, 0, &got, sizeof(got), 0);
	snprintf(what, sizeof(what), "%s for task %.32s",
		 policy_text(c, name, sizeof(name)), c->name);
	if (err) {
		explain_policy(lack_of(&t->report, -err, what), c);
	} else if (!is_as_wanted(&got, &attr)) {
		err = -EPROTO;
		because(lack_of(&t->report, EPROTO, what), RTSC_CAUSE_SYSTEM, "",
			"the kernel took it, and says policy %u, priority %u",
			got.policy, got.priority);
	}
	if (err)
		t->err = err;
	put(&t->slot->policy, got.policy);
	put(&t->slot->priority, got.priority);
	if (got.policy == RTSC_POLICY_DEADLINE) {
		put(&t->slot->runtime_ns, got.runtime_ns);
		put(&t->slot->dl_deadline_ns, got.deadline_ns);
		put(&t->slot->dl_period_ns, got.period_ns);
	}
}

static void end_last_cycle(struct rtsc_task *t);

static void *task_main(void *arg)
{
	struct rtsc_task *t = (struct rtsc_task *)arg;
	struct rtsc_slot *s = t->slot;

	prctl(PR_SET_NAME, t->config.name);
	/* of an ordinary thread; real-time ones have none */
	prctl(PR_SET_TIMERSLACK, 1);
	put(&s->tid, (uint64_t)syscall(SYS_gettid));
	if (t->config.cpus)
		take_cpus(t);
	take_policy(t);
	touch_own_stack();
	if (t->err && !t->config.may_degrade) {
		put(&s->state, RTSC_STATE_FREE);
		futex_open(&t->ready);
		return NULL;
	}
	t->err = 0;
	put(&s->state, RTSC_STATE_READY);
	futex_open(&t->ready);

	t->function(t, t->arg);
	end_last_cycle(t);
	if (peek(&s->state) != RTSC_STATE_OVERRAN)
		put(&s->state, RTSC_STATE_ENDED);
	return NULL;
}

static int check_config(const struct rtsc *app, struct rtsc_config *c,
			struct rtsc_report *report)
{
	const char *why = NULL;

	if (!c->name)
		c->name = "task";
	if (c->period_ns < 0 || c->offset_ns < 0 || c->deadline_ns < 0)
		why = "no time may be below 0";
	else if (c->offset_ns > 0 && c->offset_ns >= c->period_ns)
		why = "the offset must be less than the period";
	else if (c->policy == RTSC_POLICY_DEADLINE && c->period_ns == 0)
		why = "SCHED_DEADLINE needs period_ns and runtime_ns";
	else if (c->event_timeout_ns < 0 || (unsigned int)c->event > RTSC_EVENT_COUNTER)
		why = "no such event, or a timeout below 0";
	else if (app->started == app->capacity)
		why = "there are as many tasks as setup.tasks says";
	if (c->deadline_ns == 0)
		c->deadline_ns = c->period_ns;
	if (c->deadline_ns == 0 && c->event != RTSC_EVENT_NONE)
		c->deadline_ns = INT64_MAX; /* none */
	if (c->stack_bytes == 0)
		c->stack_bytes = TASK_STACK_BYTES;
	if (!why)
		return 0;
	because(lack_of(report, EINVAL, c->name), RTSC_CAUSE_ARGUMENT, "", "%s", why);
	return -EINVAL;
}

/* What wakes it besides its events. */
static int make_stop_fd(struct rtsc_task *t, struct rtsc_report *report)
{
	int err = 0;

	t->stop_fd = -1;
	if (t->config.event == RTSC_EVENT_NONE)
		return 0;
	if (fcntl(t->config.event_fd, F_GETFD) < 0)
		err = EBADF;
	else if ((t->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
		err = errno;
	if (err == EBADF)
		because(lack_of(report, err, t->config.name), RTSC_CAUSE_ARGUMENT, "",
			"config.event_fd is not open");
	else if (err)
		because(lack_of(report, err, t->config.name), RTSC_CAUSE_RLIMIT,
			"ulimit -n; ls /proc/PID/fd", "no eventfd to end its sleep");
	return -err;
}

static int create_thread(struct rtsc_task *t, struct rtsc_report *report)
{
	pthread_attr_t attr;
	char what[96];
	int err;

	pthread_attr_init(&attr);
	err = pthread_attr_setstacksize(&attr, t->config.stack_bytes);
	if (!err)
		err = pthread_create(&t->thread, &attr, task_main, t);
	pthread_attr_destroy(&attr);
	if (err) {
		struct rtsc_lack *l;

		snprintf(what, sizeof(what),
			 "thread with %zu KiB of stack for task %.32s",
			 t->config.stack_bytes >> 10, t->config.name);
		l = lack_of(report, err, what);
		if (err == EINVAL)
			because(l, RTSC_CAUSE_ARGUMENT, "", "the stack is too small");
		else
			explain_memory(l);
	}
	return -err;
}

static void init_slot(struct rtsc_task *t)
{
	struct rtsc_slot *s = t->slot;

	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "%s", t->config.name);
	if (t->config.event == RTSC_EVENT_NONE)
		s->period_ns = (uint64_t)t->config.period_ns;
	s->offset_ns = (uint64_t)t->config.offset_ns;
	if (t->config.deadline_ns != INT64_MAX)
		s->deadline_ns = (uint64_t)t->config.deadline_ns;
	s->overrun = (uint64_t)t->config.overrun;
	s->last_fault_cycle = UINT64_MAX;
	s->usage_cycle = UINT64_MAX;
	hist_init(&s->latency);
	hist_init(&s->execution);
	hist_init(&s->response);
	hist_init(&s->jitter);
}

static void close_stop_fd(struct rtsc_task *t)
{
	if (t->stop_fd >= 0)
		close(t->stop_fd);
	t->stop_fd = -1;
}

int rtsc_start(struct rtsc *app, const struct rtsc_config *config,
	       rtsc_function *function, void *arg, struct rtsc_task **out,
	       struct rtsc_report *report)
{
	struct rtsc_config c = *config;
	struct rtsc_task *t;
	int err = check_config(app, &c, report);

	*out = NULL;
	if (err)
		return err;
	t = &app->task[app->started];
	memset(t, 0, sizeof(*t));
	t->app = app;
	t->slot = slot_at(app, app->started);
	t->config = c;
	t->usual_ns = c.deadline_ns < c.period_ns || c.event != RTSC_EVENT_NONE
			      ? c.deadline_ns
			      : c.period_ns;
	t->function = function;
	t->arg = arg;
	init_slot(t);
	t->config.name = t->slot->name;
	err = make_stop_fd(t, report);
	if (!err)
		err = create_thread(t, report);
	if (!err) {
		futex_wait(&t->ready);
		append_report(report, &t->report);
		err = t->err;
		if (err)
			pthread_join(t->thread, NULL);
	}
	if (err) {
		close_stop_fd(t);
		return err;
	}
	app->started++;
	*out = t;
	return 0;
}

void rtsc_go(struct rtsc *app)
{
	if (!app->page || peek(&app->page->epoch_ns))
		return;
	put(&app->page->epoch_ns, (uint64_t)(seam.now_ns() + LEAD_NS));
	futex_open(&app->gone);
}

void rtsc_stop(struct rtsc_task *task)
{
	const uint64_t one = 1;
	const int err = errno;

	/* release: pairs with the acquire of its read of stop_fd, by the kernel's lock */
	__atomic_store_n(&task->stop, 1, __ATOMIC_RELEASE);
	/* a full counter wakes it as well */
	if (task->stop_fd >= 0 && write(task->stop_fd, &one, sizeof(one)) < 0)
		errno = err;
}

int rtsc_join(struct rtsc_task *task)
{
	if (!task->joined) {
		pthread_join(task->thread, NULL);
		task->joined = true;
		close_stop_fd(task);
	}
	return peek(&task->slot->state) == RTSC_STATE_OVERRAN ? -ETIME : task->err;
}

const struct rtsc_slot *rtsc_statistics(const struct rtsc_task *task)
{
	return task->slot;
}

/* --- in a task: cycles ----------------------------------------------------------- */

static bool stopped(const struct rtsc_task *t)
{
	return __atomic_load_n(&t->stop, __ATOMIC_RELAXED);
}

/*
 * Counts faults and switches since the last look. Each look is a system call, so a quiet
 * task has one each LOOK_NS; one with a page fault is looked at in each cycle for as
 * long after it, so that the next has its cycle's number.
 */
__attribute__((noinline)) static void look_at_usage(struct rtsc_task *t, int64_t now)
{
	struct rtsc_slot *s = t->slot;
	struct rtsc_usage u;
	uint64_t minor, major;

	t->look_ns = now + LOOK_NS;
	if (seam.usage(&u) < 0)
		return;
	minor = u.minor_faults - t->usage.minor_faults;
	major = u.major_faults - t->usage.major_faults;
	if (minor + major) {
		add(&s->minor_faults, minor);
		add(&s->major_faults, major);
		put(&s->last_fault_cycle, s->number);
		put(&s->fault_since_cycle, t->usage_from);
		t->watch_ns = now + LOOK_NS;
	}
	add(&s->voluntary_switches, u.voluntary_switches - t->usage.voluntary_switches);
	add(&s->involuntary_switches,
	    u.involuntary_switches - t->usage.involuntary_switches);
	put(&s->usage_cycle, s->number);
	put(&s->usage_ns, (uint64_t)now);
	t->usage = u;
	t->usage_from = s->number + 1;
	if (now < t->watch_ns)
		t->look_ns = now;
}

/* False, for rtsc_wait(), after a last look at the cycles that have ended. */
__attribute__((noinline)) static bool end_task(struct rtsc_task *t)
{
	struct rtsc_slot *s = t->slot;

	if (s->cycles && t->usage_from <= s->number) {
		begin_write(s);
		look_at_usage(t, seam.now_ns());
		end_write(s);
	}
	return false;
}

__attribute__((noinline)) static void tell_miss(struct rtsc_task *t, int64_t now)
{
	const struct rtsc_slot *s = t->slot;
	struct rtsc_miss miss;

	miss.number = s->number;
	miss.release_ns = (int64_t)s->release_ns;
	miss.wake_ns = (int64_t)s->wake_ns;
	miss.end_ns = now;
	miss.deadline_ns = t->config.deadline_ns;
	t->config.on_miss(t, &miss, t->config.miss_arg);
}

/* Whether it ended after its deadline. */
static ALWAYS_INLINE bool end_cycle(struct rtsc_task *t, int64_t now)
{
	struct rtsc_slot *s = t->slot;
	int64_t response_ns = now - (int64_t)s->release_ns;
	int64_t cpu_ns = seam.cpu_ns(), execution_ns = cpu_ns - t->cpu_ns;
	bool late = false;

	t->cpu_ns = cpu_ns;
	begin_write(s);
	put(&s->in_cycle, 0);
	add(&s->cycles, 1);
	if (RARELY(response_ns > t->usual_ns)) {
		late = response_ns > t->config.deadline_ns;
		add(&s->missed, late);
		t->look_ns = now;
	}
	if (RARELY(hist_add(&s->response, response_ns)))
		t->look_ns = now;
	if (RARELY(hist_add(&s->execution, execution_ns)))
		t->look_ns = now;
	if (RARELY(now >= t->look_ns))
		look_at_usage(t, now);
	end_write(s);
	if (RARELY(late) && t->config.on_miss)
		tell_miss(t, now);
	return late;
}

static void end_last_cycle(struct rtsc_task *t)
{
	int64_t now = seam.now_ns();

	if (t->slot->in_cycle) {
		t->look_ns = now;
		end_cycle(t, now);
	}
}

static int64_t release_of(const struct rtsc_task *t, uint64_t number)
{
	return t->base_ns + (int64_t)number * t->config.period_ns;
}

/* Waits for the epoch, and finds the first release that is not past. False: the task is
 * not periodic. */
__attribute__((noinline)) static bool find_first_release(struct rtsc_task *t)
{
	struct rtsc_page *page = t->app->page;
	int64_t period = t->config.period_ns, late;

	if (period == 0)
		return false;
	futex_wait(&t->app->gone);
	t->base_ns = (int64_t)peek(&page->epoch_ns) + t->config.offset_ns;
	late = seam.now_ns() - t->base_ns;
	if (late > 0)
		t->base_ns += (late + period - 1) / period * period;
	t->released = true;
	put(&t->slot->state, RTSC_STATE_RUNNING);
	seam.usage(&t->usage);
	t->cpu_ns = seam.cpu_ns();
	return true;
}

/* What happens to a release that is past. How many are left out; -1: none follows. */
__attribute__((noinline)) static int64_t overrun(struct rtsc_task *t, int64_t late_ns)
{
	int64_t period = t->config.period_ns;

	switch (t->config.overrun) {
	case RTSC_OVERRUN_SKIP:
		return (late_ns + period - 1) / period;
	case RTSC_OVERRUN_CATCH_UP:
		break;
	case RTSC_OVERRUN_REBASE:
		t->base_ns += late_ns;
		break;
	case RTSC_OVERRUN_STOP:
		put(&t->slot->state, RTSC_STATE_OVERRAN);
		return -1;
	}
	return 0;
}

static ALWAYS_INLINE void begin_cycle(struct rtsc_task *t, int64_t release_ns,
				      bool slept, bool first, struct rtsc_cycle *cycle)
{
	struct rtsc_slot *s = t->slot;
	int64_t before_ns = (int64_t)(s->wake_ns - s->release_ns);
	int64_t wake_ns = seam.now_ns(), late_ns = wake_ns - release_ns;
	uint64_t number = t->next++;

	begin_write(s);
	put(&s->number, number);
	put(&s->release_ns, (uint64_t)release_ns);
	put(&s->wake_ns, (uint64_t)wake_ns);
	put(&s->in_cycle, 1);
	if (slept)
		hist_add(&s->latency, late_ns);
	else
		add(&s->overruns, 1);
	if (!first)
		hist_add(&s->jitter, late_ns > before_ns ? late_ns - before_ns
							 : before_ns - late_ns);
	end_write(s);

	cycle->number = number;
	cycle->release_ns = release_ns;
	cycle->wake_ns = wake_ns;
}

/* Sleeps, unless the release is past, and begins the cycle. False: asked to stop.
 * Inlined, so that rtsc_wait() tests nothing that it knows. */
static ALWAYS_INLINE bool next_cycle(struct rtsc_task *t, int64_t release_ns,
				     bool sleeps, bool first, struct rtsc_cycle *cycle)
{
	while (sleeps && !stopped(t) && seam.sleep_until(release_ns) == EINTR)
		;
	if (RARELY(stopped(t)))
		return end_task(t);
	begin_cycle(t, release_ns, sleeps, first, cycle);
	return true;
}

/* When a cycle has ended after the next release. */
__attribute__((noinline)) static bool wait_late(struct rtsc_task *t, int64_t late_ns,
						struct rtsc_cycle *cycle)
{
	int64_t skipped = overrun(t, late_ns);

	if (skipped < 0)
		return end_task(t);
	begin_write(t->slot);
	add(&t->slot->skipped, (uint64_t)skipped);
	end_write(t->slot);
	t->next += (uint64_t)skipped;
	cycle->skipped = (uint64_t)skipped;
	return next_cycle(t, release_of(t, t->next), skipped > 0, false, cycle);
}

/* --- in a task: events ----------------------------------------------------------- */

static void begin_event_cycle(struct rtsc_task *t, struct rtsc_cycle *cycle)
{
	struct rtsc_slot *s = t->slot;
	const int64_t wake_ns = seam.now_ns();
	const uint64_t number = t->next++;

	t->is_timed = false;
	begin_write(s);
	put(&s->number, number);
	put(&s->release_ns, (uint64_t)wake_ns);
	put(&s->wake_ns, (uint64_t)wake_ns);
	put(&s->in_cycle, 1);
	add(&s->skipped, cycle->skipped);
	end_write(s);
	cycle->number = number;
	cycle->release_ns = wake_ns;
	cycle->wake_ns = wake_ns;
}

/* Sleeps until one of both can be read, at most until end_ns (0: for ever). What ppoll()
 * gives, or -errno. */
static int sleep_for_event(struct pollfd fds[2], int64_t end_ns)
{
	struct timespec left;
	int64_t left_ns = end_ns - seam.now_ns();
	int n;

	if (left_ns < 0)
		left_ns = 0;
	left.tv_sec = (time_t)(left_ns / NS_PER_S);
	left.tv_nsec = (long)(left_ns % NS_PER_S);
	n = ppoll(fds, 2, end_ns ? &left : NULL, NULL);
	return n < 0 ? -errno : n;
}

/* Takes the counter of an eventfd or timerfd. 0; 1: another took it; -errno. */
static int take_counter(struct rtsc_task *t, struct rtsc_cycle *cycle)
{
	uint64_t count = 0;

	if (t->config.event != RTSC_EVENT_COUNTER)
		return 0;
	if (read(t->config.event_fd, &count, sizeof(count)) == (ssize_t)sizeof(count)) {
		cycle->skipped = count ? count - 1 : 0;
		return 0;
	}
	return errno == EAGAIN || errno == EINTR ? 1 : -errno;
}

__attribute__((noinline)) static bool wait_event(struct rtsc_task *t,
						 struct rtsc_cycle *cycle)
{
	const int64_t timeout_ns = t->config.event_timeout_ns;
	const int64_t end_ns = timeout_ns ? seam.now_ns() + timeout_ns : 0;
	struct pollfd fds[2];
	int n;

	memset(fds, 0, sizeof(fds));
	fds[0].fd = t->config.event_fd;
	fds[1].fd = t->stop_fd;
	fds[0].events = fds[1].events = POLLIN;
	cycle->skipped = 0;
	cycle->timed_out = false;
	while (!stopped(t)) {
		n = sleep_for_event(fds, end_ns);
		if (n == -EINTR || (n > 0 && !fds[0].revents))
			continue; /* it was asked to stop, or there was a signal */
		if (n > 0 && fds[0].revents & POLLIN) {
			const int took = take_counter(t, cycle);

			n = took == 0 ? INT_MAX : took;
		} else if (n > 0) {
			n = -EPIPE; /* hung up, an error, or closed */
		}
		if (n == 1)
			continue;
		if (n < 0) {
			t->err = n;
			return end_task(t);
		}
		if (stopped(t))
			break;
		cycle->timed_out = n == 0;
		begin_event_cycle(t, cycle);
		return true;
	}
	return end_task(t);
}

void rtsc_event_time(struct rtsc_task *t, int64_t event_ns)
{
	struct rtsc_slot *s = t->slot;

	if (t->config.event == RTSC_EVENT_NONE || t->is_timed || !s->in_cycle)
		return;
	t->is_timed = true;
	begin_write(s);
	put(&s->release_ns, (uint64_t)event_ns);
	hist_add(&s->latency, (int64_t)s->wake_ns - event_ns);
	end_write(s);
}

/* Waits for the epoch, and for the first event. */
static bool wait_first_event(struct rtsc_task *t, struct rtsc_cycle *cycle)
{
	if (!t->released) {
		futex_wait(&t->app->gone);
		t->released = true;
		put(&t->slot->state, RTSC_STATE_RUNNING);
		seam.usage(&t->usage);
		t->cpu_ns = seam.cpu_ns();
	}
	cycle->late = false;
	return wait_event(t, cycle);
}

/* --- in a task: all of it -------------------------------------------------------- */

/* When no cycle has ended: before the first one, nothing can have taken too long. */
__attribute__((noinline)) static bool wait_first(struct rtsc_task *t,
						 struct rtsc_cycle *cycle)
{
	int64_t late_ns;

	if (t->config.event != RTSC_EVENT_NONE)
		return wait_first_event(t, cycle);
	if (!t->released && !find_first_release(t))
		return false;
	cycle->late = false;
	cycle->skipped = 0;
	cycle->timed_out = false;
	late_ns = seam.now_ns() - release_of(t, t->next);
	if (late_ns > 0 && t->slot->wake_ns)
		return wait_late(t, late_ns, cycle);
	return next_cycle(t, release_of(t, t->next), true, !t->slot->wake_ns, cycle);
}

bool rtsc_wait(struct rtsc_task *t, struct rtsc_cycle *cycle)
{
	int64_t now, release_ns;

	if (RARELY(!t->slot->in_cycle))
		return wait_first(t, cycle);
	now = seam.now_ns();
	cycle->late = end_cycle(t, now);
	if (RARELY(t->config.event != RTSC_EVENT_NONE))
		return wait_event(t, cycle);
	cycle->timed_out = false;
	release_ns = release_of(t, t->next);
	if (RARELY(now > release_ns))
		return wait_late(t, now - release_ns, cycle);
	cycle->skipped = 0;
	return next_cycle(t, release_ns, true, false, cycle);
}

/* --- the mutex ------------------------------------------------------------------- */

int rtsc_mutex_init(struct rtsc_mutex *mutex)
{
	pthread_mutexattr_t attr;
	int err = pthread_mutexattr_init(&attr);

	if (err)
		return -err;
	err = pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (!err)
		err = pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	if (!err)
		err = pthread_mutex_init(&mutex->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return -err;
}

int rtsc_mutex_lock(struct rtsc_mutex *mutex)
{
	return -pthread_mutex_lock(&mutex->mutex);
}

int rtsc_mutex_trylock(struct rtsc_mutex *mutex)
{
	return -pthread_mutex_trylock(&mutex->mutex);
}

int rtsc_mutex_unlock(struct rtsc_mutex *mutex)
{
	return -pthread_mutex_unlock(&mutex->mutex);
}

void rtsc_mutex_destroy(struct rtsc_mutex *mutex)
{
	pthread_mutex_destroy(&mutex->mutex);
}
