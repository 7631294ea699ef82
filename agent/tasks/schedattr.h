/* SPDX-License-Identifier: MIT */
/*
 * schedattr - what the kernel says about the scheduling of any thread.
 *
 * The raw system call: no libc here has it, and sched_getscheduler() tells neither the
 * parameters of SCHED_DEADLINE nor the slice.
 */
#ifndef SCHEDATTR_H
#define SCHEDATTR_H

#include <stdint.h>

#define SCHEDATTR_RESET_ON_FORK  0x01 /* include/uapi/linux/sched.h */
#define SCHEDATTR_RECLAIM        0x02
#define SCHEDATTR_OVERRUN_SIGNAL 0x04

/* The kernel's struct with clamps (5.3); an older kernel leaves the end as it is. */
struct schedattr {
	uint32_t size; /* how much of it this kernel has filled */
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns; /* of a fair policy: its slice (since 6.12) */
	uint64_t deadline_ns;
	uint64_t period_ns;
	uint32_t util_min;
	uint32_t util_max;
};

/* Returns 0 or -errno: -ESRCH if the thread is gone. */
int schedattr_get(int tid, struct schedattr *out);

/* "other", "fifo", ...; NULL for a number that this program does not know. */
const char *schedattr_policy_name(uint32_t policy);

#endif
