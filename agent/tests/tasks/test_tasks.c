/* SPDX-License-Identifier: MIT */
/* Lists a /proc of files that each test writes, with attributes that it makes up. */
#include "tasks/tasks.h"

#include <errno.h>
#include <sys/stat.h>

#include "files/tree.h"
#include "tests/captured.h"

static char root[] = "/tmp/rtscope-tasks-XXXXXX";
static struct schedattr attr;
static int attr_error;
static int attr_calls, right_after; /* stat's policy is told from that call on */

static int made_up_attr(int tid, struct schedattr *a)
{
	CHECK(tid > 0);
	*a = attr;
	a->size = sizeof(*a);
	if (++attr_calls < right_after)
		a->policy = 3;
	return attr_error;
}

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "w");
	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void make_directory(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
}

#define FLAGS_USER   "4194304"
#define FLAGS_KERNEL "2129984"

static void write_stat(int pid, int tid, const char *name, const char *flags,
		       const char *priorities, int threads)
{
	char path[64], text[512];
	int effective, nice, priority, policy;

	CHECK(sscanf(priorities, "%d %d %d %d", &effective, &nice, &priority,
		     &policy) == 4);
	snprintf(path, sizeof(path), "%d/task/%d/stat", pid, tid);
	snprintf(text, sizeof(text),
		 "%d (%s) S 1 1 1 0 -1 %s 130 7 3 9 20 30 4 5 %d %d %d 0 5000 0 0 "
		 "18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 6 %d %d 0 0 "
		 "0 0 0 0 0 0 0 0 0\n",
		 tid, name, flags, effective, nice, threads, priority, policy);
	write_file(path, text);
}

#define STATUS                                                                         \
	"Name:\tx\\nCpus_allowed_list:\\t9\nGroups:\t4 24\nCpus_allowed:\t3\n"         \
	"CapEff:\t0000000000800000\n"                                                  \
	"Cpus_allowed_list:\t0-1\nvoluntary_ctxt_switches:\t11\n"                      \
	"nonvoluntary_ctxt_switches:\t2\n"

/* A thread of which everything can be read. */
static void make_thread(int pid, int tid)
{
	char path[64];

	snprintf(path, sizeof(path), "%d", pid);
	make_directory(path);
	snprintf(path, sizeof(path), "%d/task", pid);
	make_directory(path);
	snprintf(path, sizeof(path), "%d/task/%d", pid, tid);
	make_directory(path);
	write_stat(pid, tid, "loop", FLAGS_USER, "-81 0 80 1", 1);
	snprintf(path, sizeof(path), "%d/task/%d/status", pid, tid);
	write_file(path, STATUS);
	snprintf(path, sizeof(path), "%d/task/%d/schedstat", pid, tid);
	write_file(path, "123456789 5 6\n");
	snprintf(path, sizeof(path), "%d/task/%d/cgroup", pid, tid);
	write_file(path, "0::/motor.service\n");
	if (tid != pid)
		return; /* the kernel has a directory that it does not list; we have not */
	snprintf(path, sizeof(path), "%d/timerslack_ns", tid);
	write_file(path, "50000\n");
}

static void remove_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	CHECK(remove(path) == 0);
}

static void begin(void)
{
	CHECK(tree_remove(root) == 0);
	CHECK(mkdir(root, 0700) == 0);
	attr = (struct schedattr){ .policy = 1, .priority = 80 };
	attr_error = attr_calls = right_after = 0;
}

static int list_status;

static const char *list_for(int64_t window_ns)
{
	const struct tasks_source source = {
		.proc = root,
		.util_clamp = "/nonexistent",
		.get_attr = made_up_attr,
	};
	struct options o = { .window_ns = window_ns };
	ssize_t n;

	capture();
	list_status = tasks_list(&source, &o, &out);
	n = pread(out.fd, captured, sizeof(captured) - 1, 0);
	CHECK(n > 0);
	captured[n] = '\0';
	close(out.fd);
	return captured;
}

static bool says(const char *expected)
{
	const char *got = list_for(0);

	if (!strstr(got, expected))
		fprintf(stderr, "expected: %s\ngot:      %s", expected, got);
	return strstr(got, expected);
}

static void a_thread_is_told_with_all_that_can_be_read(void)
{
	begin();
	make_thread(40, 40);
	CHECK(says("{\"type\":\"task\",\"pid\":40,\"tid\":40,\"name\":\"loop\","
		   "\"name_hex\":null,\"kind\":\"user\",\"state\":\"S\","
		   "\"policy\":\"fifo\",\"priority\":80,\"reset_on_fork\":false,"
		   "\"deadline\":null,\"slice_ns\":null,\"util_clamp\":null,"
		   "\"nice\":0,\"kernel_priority\":-81,\"last_cpu\":6,\"cpus\":\"0-1\","
		   "\"voluntary_switches\":11,\"involuntary_switches\":2,"
		   "\"minor_faults\":130,\"major_faults\":3,\"timer_slack_ns\":50000,"
		   "\"user_ns\":200000000,\"system_ns\":300000000,"
		   "\"cpu_time_ns\":123456789,\"cpu_time_exact\":true,"
		   "\"window_ns\":null,\"window_cpu_ns\":null,"
		   "\"started_ns\":50000000000,\"capabilities\":\"0000000000800000\","
		   "\"cgroup\":\"/motor.service\",\"unreadable\":{}}\n"
		   "{\"type\":\"tasks_end\",\"schema\":2,\"processes\":1,"
		   "\"threads\":1,\"vanished\":0,\"not_read\":0,\"window_ns\":null,"));
	CHECK(list_status == 0);
	make_thread(40, 41);
	CHECK(says("\"pid\":40,\"tid\":41,"));
}

static void names_may_hold_any_bytes(void)
{
	begin();
	make_thread(40, 40);
	write_stat(40, 40, "a) R 1 (\n\x1b[31m", FLAGS_USER, "-81 0 80 1", 1);
	CHECK(says("\"name\":\"a) R 1 (\\u000a\\u001b[31m\",\"name_hex\":null,"));
	write_stat(40, 40, "\xff\xfe \"", FLAGS_USER, "-81 0 80 1", 1);
	CHECK(says("\"name\":\"?? \\\"\",\"name_hex\":\"fffe2022\","));
}

static void each_policy_has_its_name_and_its_parameters(void)
{
	begin();
	make_thread(40, 40);
	attr = (struct schedattr){ .policy = 6,
				   .flags = 7,
				   .runtime_ns = 2000000,
				   .deadline_ns = 9000000,
				   .period_ns = 10000000 };
	CHECK(says("\"policy\":\"deadline\",\"priority\":0,\"reset_on_fork\":true,"
		   "\"deadline\":{\"runtime_ns\":2000000,\"deadline_ns\":9000000,"
		   "\"period_ns\":10000000,\"reclaim\":true,\"overrun_signal\":true},"
		   "\"slice_ns\":null"));
	attr = (struct schedattr){ .policy = 0, .runtime_ns = 1400000 };
	CHECK(says("\"policy\":\"other\",\"priority\":0,\"reset_on_fork\":false,"
		   "\"deadline\":null,\"slice_ns\":1400000"));
	attr = (struct schedattr){ .policy = 0 };
	CHECK(says("\"slice_ns\":null"));
	attr.policy = 7;
	CHECK(says("\"policy\":\"ext\""));
	attr.policy = 9;
	CHECK(says("\"policy\":\"policy-9\""));
}

static void a_kernel_thread_is_told_by_its_flag(void)
{
	begin();
	make_thread(2, 2);
	write_stat(2, 2, "irq/9-acpi", FLAGS_KERNEL, "-51 0 50 1", 1);
	CHECK(says("\"kind\":\"kernel\""));
	write_stat(2, 2, "irq/9-acpi", FLAGS_USER, "-51 0 50 1", 1);
	CHECK(says("\"kind\":\"user\""));
}

static void what_cannot_be_read_is_null_with_the_reason(void)
{
	begin();
	make_thread(40, 40);
	remove_file("40/timerslack_ns");
	write_file("40/task/40/status", "Name:\tx\nCpus_allowed_list:\t0\n");
	CHECK(says("\"timer_slack_ns\":null"));
	remove_file("40/task/40/cgroup");
	CHECK(says("\"capabilities\":null,\"cgroup\":null,"));
	CHECK(says("\"unreadable\":{"
		   "\"voluntary_switches\":\"not in the status file\","
		   "\"involuntary_switches\":\"not in the status file\","
		   "\"timer_slack_ns\":\"No such file or directory\"}"));
	attr_error = -EPERM;
	CHECK(says("\"policy\":\"fifo\",\"priority\":80,\"reset_on_fork\":null,"));
	CHECK(says("\"unreadable\":{\"reset_on_fork\":\"Operation not permitted\","));
}

static void a_kernel_that_keeps_no_exact_time_is_asked_for_its_ticks(void)
{
	begin();
	make_thread(40, 40);
	write_file("40/task/40/schedstat", "0 0 0\n");
	CHECK(says("\"cpu_time_ns\":500000000,\"cpu_time_exact\":false"));
}

static void a_thread_that_vanishes_is_counted_and_no_error(void)
{
	begin();
	make_thread(40, 40);
	make_thread(40, 41);
	make_thread(40, 42);
	remove_file("40/task/41/stat");
	remove_file("40/task/42/status");
	CHECK(says("\"processes\":1,\"threads\":1,\"vanished\":2,\"not_read\":0,"));
	CHECK(list_status == 0);
	attr_error = -ESRCH;
	CHECK(says("\"threads\":0,\"vanished\":3,"));
}

static void threads_that_the_kernel_counts_and_does_not_list_are_missed(void)
{
	begin();
	make_thread(40, 40);
	write_stat(40, 40, "loop", FLAGS_USER, "-81 0 80 1", 4);
	CHECK(says("\"threads\":1,\"vanished\":0,\"not_read\":3,"));
	write_file("40/task/40/stat", "nothing of that kind");
	CHECK(says("\"threads\":0,\"vanished\":0,\"not_read\":1,"));
}

static void a_policy_that_changes_meanwhile_is_read_again(void)
{
	begin();
	make_thread(40, 40);
	right_after = 3;
	CHECK(says("\"policy\":\"fifo\",\"priority\":80,"));
	CHECK(attr_calls == 3);
	attr_calls = 0;
	right_after = 99;
	CHECK(says("\"kernel_priority\":null,"));
	CHECK(says(
		"\"unreadable\":{\"kernel_priority\":\"its policy changed while it was "
		"read\"}"));
}

static void a_window_tells_what_each_has_used_in_it(void)
{
	begin();
	make_thread(40, 40);
	CHECK(strstr(list_for(10000000), "\"window_cpu_ns\":0,"));
	CHECK(strstr(captured, "\"window_ns\":10000000,\"window_ended\":0,"));
	/* 10^15 ticks after the boot: begun after the window did */
	write_file("40/task/40/stat",
		   "40 (x) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100000000000 0 0 0 "
		   "0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 80 1 0\n");
	CHECK(strstr(list_for(10000000), "\"window_ns\":null,\"window_cpu_ns\":null,"));
}

static void a_proc_that_is_not_there_is_an_error(void)
{
	CHECK(tree_remove(root) == 0);
	CHECK(strstr(list_for(0), "{\"type\":\"error\",\"message\":\"cannot list the "
				  "threads in "));
	CHECK(list_status == 3);
}

static void this_thread_is_on_the_list_of_this_machine(void)
{
	struct schedattr own;

	CHECK(schedattr_get(0x7fffffff, &own) == -ESRCH);
	CHECK(schedattr_get((int)getpid(), &own) == 0);
	CHECK(own.policy == 0 && own.priority == 0);
}

int main(void)
{
	CHECK(mkdtemp(root));
	a_thread_is_told_with_all_that_can_be_read();
	names_may_hold_any_bytes();
	each_policy_has_its_name_and_its_parameters();
	a_kernel_thread_is_told_by_its_flag();
	what_cannot_be_read_is_null_with_the_reason();
	a_kernel_that_keeps_no_exact_time_is_asked_for_its_ticks();
	a_thread_that_vanishes_is_counted_and_no_error();
	threads_that_the_kernel_counts_and_does_not_list_are_missed();
	a_policy_that_changes_meanwhile_is_read_again();
	a_window_tells_what_each_has_used_in_it();
	a_proc_that_is_not_there_is_an_error();
	this_thread_is_on_the_list_of_this_machine();
	return 0;
}
