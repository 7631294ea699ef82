/* SPDX-License-Identifier: MIT */
#include "start/startadvice.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "files/slurp.h"
#include "thread/rights.h"

#define CPU_DIR "/sys/devices/system/cpu"

void startadvice_print(const char *program, const char *what, int err, const char *why,
		       const char *remedy)
{
	fprintf(stderr, "rtscope: cannot start %s%s%s%s%s%s%s\n", program,
		*what ? " with " : "", what, err ? ": " : "", err ? strerror(err) : "",
		*why ? ": " : "", why);
	if (*remedy)
		fprintf(stderr, "rtscope: type: %s\n", remedy);
}

static void __attribute__((format(printf, 2, 3))) say(char text[256],
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, 256, format, args);
	va_end(args);
}

static bool has_filter(void)
{
	char text[4096];
	const char *line;

	if (slurp("/proc/self/status", text, sizeof(text)) < 0)
		return false;
	line = strstr(text, "\nSeccomp:");
	return line && atoi(line + strlen("\nSeccomp:")) > 0;
}

static void explain_rights(const struct policy *policy, struct refusal *out)
{
	if (policy->kind == POLICY_DEADLINE) {
		say(out->why, "the process lacks CAP_SYS_NICE, and no limit allows "
			      "SCHED_DEADLINE without it");
		say(out->remedy, "sudo rtscope app start --user $USER ...; in a "
				 "container: --cap-add SYS_NICE; in a unit: "
				 "AmbientCapabilities=CAP_SYS_NICE");
	} else if (policy_has_priority(policy->kind)) {
		say(out->remedy,
		    "sudo rtscope app start --user $USER ...; or for good, and log in "
		    "again: echo \"$USER - rtprio %u\" | sudo tee "
		    "/etc/security/limits.d/rtscope.conf; in a container: --ulimit "
		    "rtprio=%u; in a unit: LimitRTPRIO=%u",
		    policy->priority, policy->priority, policy->priority);
	} else {
		struct rlimit limit = { 0 };

		getrlimit(RLIMIT_NICE, &limit);
		out->cause = "rlimit";
		say(out->why,
		    "a nice value below its own, %d, needs CAP_SYS_NICE or "
		    "RLIMIT_NICE, "
		    "which allows %ld or more",
		    getpriority(PRIO_PROCESS, 0),
		    20 - (long)(limit.rlim_cur > 40 ? 40 : limit.rlim_cur));
		say(out->remedy,
		    "sudo rtscope app start --user $USER ...; or for good, and log in "
		    "again: echo \"$USER - nice %d\" | sudo tee "
		    "/etc/security/limits.d/rtscope.conf; in a unit: LimitNICE=%d",
		    policy->nice, policy->nice);
	}
}

static void explain_deadline(const struct policy *policy, int err, struct refusal *out)
{
	struct cpulist online = { 0 }, allowed = { 0 };
	int64_t period = 1000000, runtime = 950000;
	char text[CPULIST_TEXT_MAX];

	slurp_int("/proc/sys/kernel/sched_rt_period_us", &period);
	slurp_int("/proc/sys/kernel/sched_rt_runtime_us", &runtime);
	if (err == EBUSY) {
		say(out->why,
		    "admission control: it asks for %.1f %% of a CPU, and all "
		    "SCHED_DEADLINE threads together may have %.0f %% of each",
		    100.0 * (double)policy->runtime_ns / (double)policy->period_ns,
		    runtime < 0 ? 100.0 : 100.0 * (double)runtime / (double)period);
		say(out->remedy, "rtscope tasks --rt (lists what others have); sysctl "
				 "kernel.sched_rt_runtime_us");
	} else if (err == EPERM) {
		if (slurp(CPU_DIR "/online", text, sizeof(text)) > 0) {
			text[strcspn(text, "\n")] = '\0';
			cpulist_parse(text, &online);
		}
		cpulist_get_affinity(&allowed);
		say(out->why,
		    "a SCHED_DEADLINE thread must be allowed on every CPU of its root "
		    "domain: it is allowed on %u of %u that are online",
		    cpulist_count(&allowed), cpulist_count(&online));
		say(out->remedy,
		    "leave --cpus and taskset out; or make an exclusive cpuset and "
		    "start it there: echo root | sudo tee "
		    "/sys/fs/cgroup/GROUP/cpuset.cpus.partition");
	} else if (err == EINVAL) {
		say(out->why, "the kernel wants 1024 ns <= runtime <= deadline <= "
			      "period, and a period within its limits");
		say(out->remedy, "grep . /proc/sys/kernel/sched_deadline_period_*");
	}
}

void startadvice_policy(const struct policy *policy, int err, struct refusal *out)
{
	policy_explain(policy, err, out);
	if (err == EPERM && rights_have(RIGHT_SYS_NICE) && rights_in_user_namespace())
		return;
	if ((err == EPERM || err == EACCES) && !rights_have(RIGHT_SYS_NICE)) {
		explain_rights(policy, out);
	} else if (strcmp(out->cause, "cgroup") == 0) {
		char where[128];

		if (rights_cgroup_without_rt(where, sizeof(where))) {
			where[strcspn(where, " ")] = '\0';
			say(out->remedy,
			    "echo 100000 | sudo tee %.100s; or boot with "
			    "rt_group_sched=0",
			    where);
		}
	} else if (policy->kind == POLICY_DEADLINE) {
		explain_deadline(policy, err, out);
	} else if (err == EPERM && has_filter()) {
		say(out->why, "the process has CAP_SYS_NICE, and a filter of system "
			      "calls (seccomp)");
		say(out->remedy,
		    "in a container: --security-opt seccomp=unconfined; in a unit: "
		    "SystemCallFilter=@resources, and no RestrictRealtime=yes");
	}
}

/* The CPUs of a file of the kernel; empty if it cannot be read. */
static void cpus_of(const char *path, struct cpulist *out, char *text, size_t size)
{
	*out = (struct cpulist){ 0 };
	if (slurp(path, text, size) <= 0)
		snprintf(text, size, "unknown");
	text[strcspn(text, "\n")] = '\0';
	if (cpulist_parse(text, out))
		*out = (struct cpulist){ 0 };
}

void startadvice_cpus(const struct cpulist *wanted, const struct cpulist *got,
		      struct refusal *out)
{
	char present_text[CPULIST_TEXT_MAX], online_text[CPULIST_TEXT_MAX];
	char got_text[CPULIST_TEXT_MAX];
	struct cpulist lacking = *wanted, present, online, usable, reachable;
	int cpu;

	cpulist_subtract(&lacking, got);
	cpu = cpulist_next(&lacking, 0);
	cpus_of(CPU_DIR "/present", &present, present_text, sizeof(present_text));
	cpus_of(CPU_DIR "/online", &online, online_text, sizeof(online_text));
	*out = (struct refusal){ .cause = "cpu" };
	if (cpu >= 0 && !cpulist_has(&present, (unsigned int)cpu)) {
		say(out->why, "this machine has no CPU %d: it has %.100s", cpu,
		    present_text);
		say(out->remedy, "lscpu --extended");
	} else if (cpu >= 0 && !cpulist_has(&online, (unsigned int)cpu)) {
		say(out->why, "CPU %d is offline: online are %.100s", cpu, online_text);
		say(out->remedy, "echo 1 | sudo tee " CPU_DIR "/cpu%d/online", cpu);
	} else {
		if (cpulist_find_reachable(&usable, &reachable) == 0)
			cpulist_format(&reachable, got_text, sizeof(got_text));
		else
			snprintf(got_text, sizeof(got_text), "unknown");
		say(out->why,
		    "CPU %d is outside of the cpuset of this process, which has %.100s",
		    cpu, got_text);
		say(out->remedy, "cat /proc/self/cpuset; start it from a shell of "
				 "another group; in a unit: AllowedCPUs=; in a "
				 "container: --cpuset-cpus");
	}
}

void startadvice_lock(int err, struct refusal *out)
{
	struct rlimit limit = { 0 };

	*out = (struct refusal){ .cause = "memlock" };
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if ((err == ENOMEM || err == EAGAIN || err == EPERM) &&
	    limit.rlim_cur != RLIM_INFINITY)
		say(out->why,
		    "RLIMIT_MEMLOCK is %lu KiB, and the process lacks CAP_IPC_LOCK",
		    (unsigned long)(limit.rlim_cur >> 10));
	say(out->remedy,
	    "sudo rtscope app start --user $USER ...; or for good, and log in again: "
	    "echo \"$USER - memlock unlimited\" | sudo tee "
	    "/etc/security/limits.d/rtscope.conf; in a container: --ulimit memlock=-1; "
	    "in a unit: LimitMEMLOCK=infinity");
}

void startadvice_trace(int err, struct refusal *out)
{
	int64_t scope = 0;

	*out = (struct refusal){ .cause = "denied" };
	slurp_int("/proc/sys/kernel/yama/ptrace_scope", &scope);
	if (err == EPERM && scope >= 2)
		say(out->why,
		    "no setting survives exec, so the call is made in the program, by "
		    "ptrace(2); kernel.yama.ptrace_scope is %d and forbids it",
		    (int)scope);
	else
		say(out->why, "no setting survives exec, so the call is made in the "
			      "program, by ptrace(2), which was refused");
	say(out->remedy,
	    "leave --lock out, and call mlockall(MCL_CURRENT | MCL_FUTURE) in the "
	    "program");
}

void startadvice_isolated(const char *program, const struct cpulist *cpus)
{
	char text[CPULIST_TEXT_MAX];
	struct cpulist isolated, ours, others;

	if (cpulist_count(cpus) < 2 ||
	    slurp("/sys/devices/system/cpu/isolated", text, sizeof(text)) <= 1)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (cpulist_parse(text, &isolated))
		return;
	ours = others = isolated;
	cpulist_subtract(&others, cpus);
	cpulist_subtract(&ours, &others);
	if (cpulist_count(&ours) > 1)
		fprintf(stderr,
			"rtscope: note: CPUs %s are isolated: the kernel does not "
			"spread threads over them, so all of %s stay on one unless it "
			"pins them itself\n",
			text, program);
}
