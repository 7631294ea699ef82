/* SPDX-License-Identifier: MIT */
/*
 * policy - scheduling policy of the calling thread: set, read back, explain a refusal.
 *
 * Raw system calls: musl's sched_setscheduler() is a stub that returns ENOSYS, and no
 * libc here knows SCHED_DEADLINE.
 */
#ifndef POLICY_H
#define POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum policy_kind {
	POLICY_OTHER = 0, /* the kernel's numbers */
	POLICY_FIFO = 1,
	POLICY_RR = 2,
	POLICY_BATCH = 3,
	POLICY_IDLE = 5,
	POLICY_DEADLINE = 6,
};

struct policy {
	enum policy_kind kind;
	unsigned int priority; /* 1 to 99 for FIFO and RR, else 0 */
	int nice;              /* OTHER and BATCH only */
	uint64_t runtime_ns;   /* DEADLINE only, as the next two */
	uint64_t deadline_ns;  /* 0: the period */
	uint64_t period_ns;
	bool reset_on_fork; /* what it starts is ordinary */
};

/* Name as on the command line and in the contract; "unknown" for others. */
const char *policy_name(enum policy_kind kind);

/* Returns 0 or -EINVAL. */
int policy_parse(const char *name, enum policy_kind *out);

bool policy_has_priority(enum policy_kind kind);

/* For the calling thread. Both return 0 or -errno. */
int policy_set(const struct policy *policy);
int policy_get(struct policy *out);

/* Why the kernel refused, as a word of the contract and as sentences. */
struct refusal {
	const char *cause; /* rlimit, capability, cgroup, affinity, bandwidth, other */
	char why[256];
	char remedy[256];
};

/* Looks for the cause of err, got when policy was set on the CPU. */
void policy_explain(const struct policy *policy, int err, struct refusal *out);

#endif
