/* SPDX-License-Identifier: MIT */
#include "thread/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread/rights.h"

#define RESET_ON_FORK 0x01 /* SCHED_FLAG_RESET_ON_FORK, include/uapi/linux/sched.h */

/* The first version of the kernel's struct; size says so to the kernel. */
struct attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns;
	uint64_t deadline_ns;
	uint64_t period_ns;
};

_Static_assert(sizeof(struct attr) == 48, "SCHED_ATTR_SIZE_VER0");

static const struct {
	const char *name;
	enum policy_kind kind;
} names[] = {
	{ "other", POLICY_OTHER }, { "fifo", POLICY_FIFO },
	{ "rr", POLICY_RR },       { "batch", POLICY_BATCH },
	{ "idle", POLICY_IDLE },   { "deadline", POLICY_DEADLINE },
};

#define NAMES (sizeof(names) / sizeof(names[0]))

const char *policy_name(enum policy_kind kind)
{
	for (size_t i = 0; i < NAMES; i++)
		if (names[i].kind == kind)
			return names[i].name;
	return "unknown";
}

int policy_parse(const char *name, enum policy_kind *out)
{
	for (size_t i = 0; i < NAMES; i++) {
		if (strcmp(names[i].name, name) == 0) {
			*out = names[i].kind;
			return 0;
		}
	}
	return -EINVAL;
}

bool policy_has_priority(enum policy_kind kind)
{
	return kind == POLICY_FIFO || kind == POLICY_RR;
}

int policy_set(const struct policy *policy)
{
	struct attr attr = {
		.size = sizeof(attr),
		.policy = policy->kind,
		.flags = policy->reset_on_fork ? RESET_ON_FORK : 0,
		.nice = policy->nice,
		.priority = policy->priority,
	};

	if (policy->kind == POLICY_DEADLINE) {
		attr.runtime_ns = policy->runtime_ns;
		attr.deadline_ns =
			policy->deadline_ns ? policy->deadline_ns : policy->period_ns;
		attr.period_ns = policy->period_ns;
	}
	return syscall(SYS_sched_setattr, 0, &attr, 0) < 0 ? -errno : 0;
}

int policy_get(struct policy *out)
{
	struct attr attr = { .size = sizeof(attr) };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0)
		return -errno;

	*out = (struct policy){
		.kind = (enum policy_kind)attr.policy,
		.priority = attr.priority,
		.nice = attr.nice,
		.runtime_ns = attr.runtime_ns,
		.deadline_ns = attr.deadline_ns,
		.period_ns = attr.period_ns,
		.reset_on_fork = attr.flags & RESET_ON_FORK,
	};
	return 0;
}

static void explain_deadline(int err, struct refusal *out)
{
	if (err == EBUSY) {
		out->cause = "bandwidth";
		snprintf(out->why, sizeof(out->why),
			 "the kernel's admission control has no bandwidth left");
		snprintf(out->remedy, sizeof(out->remedy),
			 "ask for less run time, or end other SCHED_DEADLINE threads");
		return;
	}
	out->cause = "affinity";
	snprintf(out->why, sizeof(out->why),
		 "a SCHED_DEADLINE thread must be allowed on every CPU of its root "
		 "domain; "
		 "it cannot be pinned");
	snprintf(out->remedy, sizeof(out->remedy),
		 "measure all CPUs (no --cpus, no taskset, no restricting cpuset)");
}

static void explain_cgroup(const char *where, struct refusal *out)
{
	out->cause = "cgroup";
	snprintf(out->why, sizeof(out->why),
		 "the kernel has RT_GROUP_SCHED and the cgroup of this process has no "
		 "real-time run time (%.100s), which refuses even root",
		 where);
	snprintf(
		out->remedy, sizeof(out->remedy),
		"start from the root cgroup, give the group run time (cgroup v1: write "
		"cpu.rt_runtime_us), or boot with rt_group_sched=0");
}

/* Every ordinary thread is measured at nice 0. A process may always leave that; the way
 * back needs a right. */
static void explain_nice(int nice, struct refusal *out)
{
	out->cause = "capability";
	snprintf(out->why, sizeof(out->why),
		 "the process runs at nice %d, and may not go back to 0 without "
		 "CAP_SYS_NICE or a RLIMIT_NICE of 20",
		 nice);
	snprintf(out->remedy, sizeof(out->remedy),
		 "start it from a shell at nice 0 (without nice or renice), raise the "
		 "limit "
		 "(ulimit -e, LimitNICE=, /etc/security/limits.d), or run as root");
}

static void explain_privilege(const struct policy *policy, struct refusal *out)
{
	struct rlimit limit = { 0 };
	int nice = getpriority(PRIO_PROCESS, 0);

	if (policy->kind == POLICY_OTHER && nice > 0) {
		explain_nice(nice, out);
		return;
	}
	getrlimit(RLIMIT_RTPRIO, &limit);
	if (limit.rlim_cur > 0 && policy_has_priority(policy->kind)) {
		out->cause = "rlimit";
		snprintf(out->why, sizeof(out->why),
			 "RLIMIT_RTPRIO allows priorities up to %lu only, and the "
			 "process "
			 "lacks CAP_SYS_NICE",
			 (unsigned long)limit.rlim_cur);
		snprintf(out->remedy, sizeof(out->remedy),
			 "ask for --priority %lu or less, raise the limit (ulimit -r, "
			 "LimitRTPRIO=, /etc/security/limits.d), or run as root",
			 (unsigned long)limit.rlim_cur);
		return;
	}
	out->cause = "capability";
	snprintf(out->why, sizeof(out->why),
		 "the process lacks CAP_SYS_NICE, and RLIMIT_RTPRIO is 0");
	snprintf(out->remedy, sizeof(out->remedy),
		 "run through sudo, in a container add --cap-add SYS_NICE, or measure "
		 "ordinary threads with --policy other");
}

static void explain_user_namespace(struct refusal *out)
{
	out->cause = "capability";
	snprintf(out->why, sizeof(out->why),
		 "the process is in a user namespace, where CAP_SYS_NICE does not "
		 "count");
	snprintf(out->remedy, sizeof(out->remedy),
		 "ulimit -r 99 before the container is started, or start it outside of "
		 "a rootless container");
}

void policy_explain(const struct policy *policy, int err, struct refusal *out)
{
	char where[128];

	*out = (struct refusal){ .cause = "other" };

	if (err == EPERM && !rights_have(RIGHT_SYS_NICE))
		explain_privilege(policy, out);
	else if (err == EPERM && rights_in_user_namespace())
		explain_user_namespace(out);
	else if (err == EPERM && rights_cgroup_without_rt(where, sizeof(where)))
		explain_cgroup(where, out);
	else if (policy->kind == POLICY_DEADLINE && (err == EPERM || err == EBUSY))
		explain_deadline(err, out);
	else if (err == EPERM)
		snprintf(out->remedy, sizeof(out->remedy),
			 "a seccomp filter or security module may forbid it: look at "
			 "Seccomp in /proc/self/status and at the audit log");
}
