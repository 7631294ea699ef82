/* SPDX-License-Identifier: MIT */
/*
 * sweep - plants a section again and again, each a little later in the measuring
 * thread's interval, so that one of them begins just before that is due.
 *
 *   sweep CPU EVERY_NS US                preemption off
 *   sweep CPU EVERY_NS US OTHER_CPU      a lock is held there, and waited for here
 *
 * Ends only when it is ended, or with status 1 if a call fails: the kernel is not a
 * patched one. Without a C library: for that a compiler would take minutes.
 */
#include <stdint.h>

#include "section.h"

/* include/uapi/asm-generic/unistd.h and its neighbours, of Linux */
#define SYS_EXIT_GROUP      94
#define SYS_CLOCK_GETTIME   113
#define SYS_CLOCK_NANOSLEEP 115
#define SYS_PTRACE          117
#define SYS_SETSCHEDULER    119
#define SYS_SETAFFINITY     122
#define SYS_PRCTL           167
#define SYS_CLONE           220
#define PR_SET_PDEATHSIG    1
#define SIGKILL             9
#define SIGCHLD             17
#define CLOCK_MONOTONIC     1
#define TIMER_ABSTIME       1
#define SCHED_FIFO          1

#define NS_PER_S 1000000000L
#define SOON_NS  10000000L
#define EARLY_NS 30000L /* the holder is there before the one that waits */

struct timespec {
	int64_t s, ns;
};

static long call(long number, long a, long b, long c, long d)
{
	register long a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c;
	register long a3 __asm__("a3") = d, a4 __asm__("a4") = 0;
	register long a7 __asm__("a7") = number;

	__asm__ volatile("ecall"
			 : "+r"(a0)
			 : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a7)
			 : "memory");
	return a0;
}

static void succeed(int well)
{
	if (!well)
		call(SYS_EXIT_GROUP, 1, 0, 0, 0);
}

/* The lowest real-time priority: above every load, below the measuring thread. */
static void be_first_on(long cpu)
{
	const int32_t lowest = 1;
	const uint64_t only = UINT64_C(1) << cpu;

	succeed(call(SYS_SETAFFINITY, 0, sizeof(only), (long)&only, 0) >= 0);
	succeed(call(SYS_SETSCHEDULER, 0, SCHED_FIFO, (long)&lowest, 0) == 0);
}

static void plant(long what, long us, long at_ns, long every_ns)
{
	for (;; at_ns += every_ns) {
		const struct timespec at = { at_ns / NS_PER_S, at_ns % NS_PER_S };
		long done;

		call(SYS_CLOCK_NANOSLEEP, CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&at, 0);
		done = call(SYS_PTRACE, what, us, 0, 0);
		/* Of two that meet, one may have been kept away for too long. */
		succeed(done == PLANTED || (done == 0 && what != PREEMPTION_OFF));
	}
}

static long number(const char *text)
{
	long n = 0;

	while (*text)
		n = 10 * n + *text++ - '0';
	return n;
}

__attribute__((used)) static void sweep(const long *stack)
{
	const char *const *argv = (const char *const *)(stack + 1);
	long argc = stack[0], cpu, every_ns, us;
	struct timespec now;

	succeed(argc == 4 || argc == 5);
	cpu = number(argv[1]);
	every_ns = number(argv[2]);
	us = number(argv[3]);
	call(SYS_CLOCK_GETTIME, CLOCK_MONOTONIC, (long)&now, 0, 0);
	now.ns += now.s * NS_PER_S + SOON_NS;
	if (argc == 5 && call(SYS_CLONE, SIGCHLD, 0, 0, 0) == 0) {
		call(SYS_PRCTL, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
		be_first_on(number(argv[4]));
		plant(LOCK_HELD, us, now.ns - EARLY_NS, every_ns);
	}
	be_first_on(cpu);
	if (argc == 5)
		plant(LOCK_WAITED_FOR, 0, now.ns, every_ns);
	plant(PREEMPTION_OFF, us, now.ns, every_ns);
}

__attribute__((naked)) void _start(void)
{
	__asm__("mv a0, sp\n\tandi sp, sp, -16\n\tj sweep");
}
