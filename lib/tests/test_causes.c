/* SPDX-License-Identifier: MIT */
/* Each refusal is named with its cause and what to type: on a fake machine, and, where
 * this one lets rights be dropped, for real. */
#define RTSC_TEST
#include "../rtscope_task.c"

#include <sys/wait.h>

#include "check.h"

static char root[64] = "/tmp/rtscope-lib-XXXXXX";
static char root_less[] = "";
static int refusal;
static unsigned long fake_limit;

static unsigned long limit_by_test(int resource)
{
	(void)resource;
	return fake_limit;
}

static int refuse(const struct rtsc_attr *attr)
{
	(void)attr;
	return refusal;
}

static const char *place(const char *path)
{
	static char whole[512];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	return whole;
}

static void write_file(const char *path, const char *text)
{
	char parent[512];
	FILE *f;

	for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(parent, sizeof(parent), "%s%.*s", root, (int)(at - path),
			 path);
		mkdir(parent, 0700);
	}
	f = fopen(place(path), "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void machine(const char *caps, const char *cgroup)
{
	char status[256];

	snprintf(status, sizeof(status),
		 "Name:\tx\nThreads:\t1\nCapEff:\t%s\nSeccomp:\t0\n", caps);
	write_file("/proc/thread-self/status", status);
	write_file("/proc/self/cgroup", cgroup);
	write_file("/proc/self/uid_map", "         0          0 4294967295\n");
	write_file("/proc/self/comm", "x\n");
	write_file("/proc/sys/kernel/sched_rt_period_us", "1000000\n");
	write_file("/proc/sys/kernel/sched_rt_runtime_us", "950000\n");
	seam.root = root;
	seam.set_attr = refuse;
	seam.limit = limit_by_test;
}

#define ALL  "000001ffffffffff"
#define NONE "0000000000000000"

static struct rtsc_lack asked(enum rtsc_policy policy, int priority, int err)
{
	struct rtsc_config c = { .name = "t",
				 .policy = policy,
				 .priority = priority,
				 .runtime_ns = 300000,
				 .period_ns = 1000000 };
	struct rtsc_report report = { 0 };
	struct rtsc_lack *l = lack_of(&report, err, "policy");

	explain_policy(l, &c);
	return *l;
}

static bool says(const struct rtsc_lack *l, enum rtsc_cause cause, const char *why,
		 const char *remedy)
{
	bool ok = l->cause == cause && strstr(l->why, why) && strstr(l->remedy, remedy);

	if (!ok)
		fprintf(stderr, "%s: %s; type: %s\n", rtsc_cause_name(l->cause), l->why,
			l->remedy);
	return ok;
}

static bool set_limit(int resource, unsigned long value)
{
	uint64_t limit[2] = { value, value };

	return syscall(SYS_prlimit64, 0, resource, limit, NULL) == 0;
}

/* In a process of its own, as a hard limit does not come back. */
static void in_child(void (*act)(void))
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		act();
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void without_rights(void)
{
	struct rtsc_lack l;

	machine(NONE, "0::/\n");
	fake_limit = 0;
	l = asked(RTSC_POLICY_FIFO, 80, EPERM);
	CHECK(says(&l, RTSC_CAUSE_CAPABILITY, "RLIMIT_RTPRIO is 0", "setcap"));
	l = asked(RTSC_POLICY_DEADLINE, 0, EPERM);
	CHECK(says(&l, RTSC_CAUSE_CAPABILITY, "no limit allows", "setcap"));
	l = asked(RTSC_POLICY_OTHER, 0, EACCES);
	CHECK(says(&l, RTSC_CAUSE_RLIMIT, "RLIMIT_NICE", "LimitNICE"));
}

static void with_a_small_limit(void)
{
	struct rtsc_lack l;

	machine(NONE, "0::/\n");
	fake_limit = 20;
	l = asked(RTSC_POLICY_RR, 80, EPERM);
	CHECK(says(&l, RTSC_CAUSE_RLIMIT, "up to 20", "ulimit -r 80"));
}

static void a_namespace_makes_capabilities_worthless(void)
{
	struct rtsc_lack l;

	machine(ALL, "0::/\n");
	write_file("/proc/self/uid_map", "0 1000 1\n");
	l = asked(RTSC_POLICY_FIFO, 80, EPERM);
	CHECK(says(&l, RTSC_CAUSE_CAPABILITY, "user namespace", "container"));
}

static void a_cgroup_without_run_time_is_named_by_its_file(void)
{
	struct rtsc_lack l;

	machine(ALL, "3:cpuset:/other\n2:cpu,cpuacct:/docker/7\n0::/\n");
	write_file("/sys/fs/cgroup/cpu,cpuacct/docker/7/cpu.rt_runtime_us", "0\n");
	l = asked(RTSC_POLICY_FIFO, 80, EPERM);
	CHECK(says(&l, RTSC_CAUSE_CGROUP, "RT_GROUP_SCHED",
		   "tee /sys/fs/cgroup/cpu,cpuacct/docker/7/cpu.rt_runtime_us"));
	/* with run time it is not the cause */
	write_file("/sys/fs/cgroup/cpu,cpuacct/docker/7/cpu.rt_runtime_us", "950000\n");
	l = asked(RTSC_POLICY_FIFO, 80, EPERM);
	CHECK(l.cause == RTSC_CAUSE_SYSTEM);
}

static void a_cgroup_of_version_2_cannot_have_run_time(void)
{
	struct rtsc_lack l;

	machine(ALL, "0::/system.slice/x.service\n");
	l = asked(RTSC_POLICY_FIFO, 80, EPERM);
	CHECK(says(&l, RTSC_CAUSE_CGROUP, "/system.slice/x.service",
		   "rt_group_sched=0"));
	write_file("/proc/thread-self/status", "CapEff:\t" ALL "\nSeccomp:\t2\n");
	l = asked(RTSC_POLICY_FIFO, 80, EPERM);
	CHECK(says(&l, RTSC_CAUSE_SECCOMP, "seccomp", "seccomp=unconfined"));
}

static void deadline_has_causes_of_its_own(void)
{
	struct rtsc_lack l;

	machine(ALL, "0::/\n");
	l = asked(RTSC_POLICY_DEADLINE, 0, EBUSY);
	CHECK(says(&l, RTSC_CAUSE_BANDWIDTH, "30.0 % of a CPU", "rtscope tasks --rt"));
	CHECK(strstr(l.why, "95 % of each"));
	l = asked(RTSC_POLICY_DEADLINE, 0, EINVAL);
	CHECK(says(&l, RTSC_CAUSE_ARGUMENT, "runtime <= deadline <= period", "grep"));

	/* more than this process can be allowed on */
	write_file("/sys/devices/system/cpu/online", "0-1023\n");
	CHECK(online_cpus() == 1024);
	l = asked(RTSC_POLICY_DEADLINE, 0, EPERM);
	CHECK(says(&l, RTSC_CAUSE_AFFINITY, "of its root domain", "partition"));
}

static void end_at_once(struct rtsc_task *task, void *ran)
{
	(void)task;
	*(bool *)ran = true;
}

static const struct rtsc_setup bare = { .heap_bytes = RTSC_NONE,
					.main_stack_bytes = RTSC_NONE,
					.tasks = 2,
					.unlocked = true,
					.private_statistics = true };

/* A refused task never runs, unless it may degrade: then it runs, and is reported. */
static void a_refusal_is_an_error_unless_the_task_may_degrade(void)
{
	struct rtsc_config c = { .name = "control",
				 .policy = RTSC_POLICY_FIFO,
				 .priority = 80,
				 .stack_bytes = STACK_BYTES };
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	bool ran = false;
	struct rtsc *app;

	machine(NONE, "0::/\n");
	refusal = -EPERM;
	CHECK(rtsc_open(&app, &bare, &report) == 0 && report.lacks == 0);
	CHECK(rtsc_start(app, &c, end_at_once, &ran, &task, &report) == -EPERM);
	CHECK(!task && !ran && report.lacks == 1 && report.lack[0].err == EPERM);
	CHECK(strcmp(report.lack[0].what, "SCHED_FIFO 80 for task control") == 0);

	c.may_degrade = true;
	CHECK(rtsc_start(app, &c, end_at_once, &ran, &task, &report) == 0);
	CHECK(rtsc_join(task) == 0 && ran && report.lacks == 2);
	CHECK(rtsc_statistics(task)->policy == RTSC_POLICY_OTHER);
	rtsc_close(app);
}

/* D7: what the kernel took, but did not do, is no success. */
static void what_is_read_back_counts(void)
{
	struct rtsc_config c = { .name = "t",
				 .policy = RTSC_POLICY_RR,
				 .priority = 5,
				 .stack_bytes = STACK_BYTES };
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	bool ran = false;
	struct rtsc *app;

	machine(ALL, "0::/\n");
	refusal = 0;
	CHECK(rtsc_open(&app, &bare, &report) == 0);
	CHECK(rtsc_start(app, &c, end_at_once, &ran, &task, &report) == -EPROTO);
	CHECK(report.lacks == 1 && strstr(report.lack[0].why, "says policy 0"));
	rtsc_close(app);
}

static int short_of_memory(void)
{
	return -ENOMEM;
}

static void locked_memory_that_a_limit_refuses_is_named(void)
{
	struct rtsc_setup setup = bare;
	struct rtsc_report report = { 0 };
	struct rtsc *app;

	machine(NONE, "0::/\n");
	fake_limit = 65536;
	seam.lock_memory = short_of_memory;
	setup.unlocked = false;
	CHECK(rtsc_open(&app, &setup, &report) == 0 && report.lacks == 1);
	CHECK(says(&report.lack[0], RTSC_CAUSE_RLIMIT, "RLIMIT_MEMLOCK is 64 KiB",
		   "ulimit -l unlimited"));
	rtsc_close(app);
}

static void a_mistake_of_the_program_is_its_own_cause(void)
{
	struct rtsc_config c = { .name = "t", .period_ns = 100, .offset_ns = 100 };
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	bool ran = false;
	struct rtsc *app;
	cpu_set_t set;

	/* the fake kernel sets nothing: read back is what `nice make check` gave */
	c.nice = getpriority(PRIO_PROCESS, 0);
	seam.root = root_less;
	CHECK(rtsc_open(&app, &bare, &report) == 0);
	CHECK(rtsc_start(app, &c, end_at_once, &ran, &task, &report) == -EINVAL);
	CHECK(says(&report.lack[0], RTSC_CAUSE_ARGUMENT, "less than the period", ""));
	c.offset_ns = 0;
	c.cpus = "2-1";
	c.stack_bytes = STACK_BYTES;
	refusal = 0;
	CHECK(rtsc_start(app, &c, end_at_once, &ran, &task, &report) == -EINVAL);
	CHECK(says(&report.lack[1], RTSC_CAUSE_ARGUMENT, "0,2-3", ""));
	c.cpus = "1023";
	CHECK(rtsc_start(app, &c, end_at_once, &ran, &task, &report) == -EINVAL);
	CHECK(report.lack[2].cause == RTSC_CAUSE_AFFINITY && !ran);
	rtsc_close(app);

	CHECK(parse_cpus("0,2-3", &set) == 0 && CPU_COUNT(&set) == 3);
	CHECK(!CPU_ISSET(1, &set) && CPU_ISSET(3, &set));
	CHECK(parse_cpus("", &set) && parse_cpus("1,", &set) && parse_cpus("a", &set));
	CHECK(parse_cpus("0-1\n", &set) == 0 && CPU_COUNT(&set) == 2);
	CHECK(parse_cpus("0-99999", &set) && parse_cpus("1 2", &set));
}

static void a_full_report_counts_what_it_left_out(void)
{
	struct rtsc_report report = { 0 };

	for (int i = 0; i < RTSC_MAX_LACKS + 3; i++)
		lack_of(&report, 0, "x");
	CHECK(report.lacks == RTSC_MAX_LACKS && report.left_out == 3);
}

/* The kernel's own refusals, without rights and under small limits. */
static void for_real(void)
{
	struct {
		uint32_t version;
		int pid;
	} header = { 0x20080522, 0 };
	uint32_t no_caps[6] = { 0 };
	struct rtsc_config c = { .name = "t",
				 .policy = RTSC_POLICY_FIFO,
				 .priority = 80,
				 .stack_bytes = (size_t)1 << 30 };
	struct rtsc_setup setup = bare;
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	bool ran = false;
	struct rtsc *app;

	seam.root = root_less;
	seam.set_attr = set_attr;
	seam.limit = limit_of;
	seam.lock_memory = lock_memory;
	CHECK(set_limit(RLIMIT_RTPRIO, 0));
	/* more than this program has: it is linked statically */
	setup.unlocked = SANITIZED || !set_limit(RLIMIT_MEMLOCK, (size_t)6 << 20);
	CHECK(syscall(SYS_capset, &header, no_caps) == 0);
	CHECK(rtsc_open(&app, &setup, &report) == 0 && report.lacks == 0);
	if (!setup.unlocked) {
		CHECK(rtsc_start(app, &c, end_at_once, &ran, &task, &report) ==
		      -EAGAIN);
		CHECK(says(&report.lack[0], RTSC_CAUSE_RLIMIT, "RLIMIT_MEMLOCK",
			   "ulimit -l"));
	}
	report.lacks = 0;
	c.stack_bytes = STACK_BYTES;
	CHECK(rtsc_start(app, &c, end_at_once, &ran, &task, &report) == -EPERM);
	CHECK(report.lacks == 1 && report.lack[0].cause == RTSC_CAUSE_CAPABILITY);
	CHECK(!ran);
	rtsc_close(app);
}

static void remove_root(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%.64s'", root);
	CHECK(system(command) == 0);
}

int main(int argc, char **argv)
{
	(void)argv;
	CHECK(mkdtemp(root));
	without_rights();
	with_a_small_limit();
	a_namespace_makes_capabilities_worthless();
	a_cgroup_without_run_time_is_named_by_its_file();
	a_cgroup_of_version_2_cannot_have_run_time();
	deadline_has_causes_of_its_own();
	a_refusal_is_an_error_unless_the_task_may_degrade();
	what_is_read_back_counts();
	locked_memory_that_a_limit_refuses_is_named();
	a_mistake_of_the_program_is_its_own_cause();
	a_full_report_counts_what_it_left_out();
	if (argc == 1) /* an emulator has limits and memory of its own */
		in_child(for_real);
	remove_root();
	return 0;
}
