/* SPDX-License-Identifier: MIT */
/* tracefs and traceevents on a directory that stands for the machine's root. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/slurp.h"
#include "machine/tracefs.h"
#include "tests/check.h"
#include "trace/traceevents.h"

static char root[64] = "/tmp/rtscope-test-XXXXXX";
static struct trace_enabled events;

static void run(const char *format)
{
	char command[512];

	snprintf(command, sizeof(command), format, root);
	CHECK(system(command) == 0);
}

static const char *text_of(const char *directory, const char *name)
{
	static char text[4096];
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	CHECK(slurp(path, text, sizeof(text)) >= 0);
	return text;
}

static int result_of(const char *system_name, const char *name)
{
	for (unsigned int i = 0; i < traceevents_count(); i++)
		if (strcmp(trace_events[i].system, system_name) == 0 &&
		    strcmp(trace_events[i].name, name) == 0)
			return events.err[i];
	CHECK(!"an event of the list");
	return 0;
}

static void each_reason_for_no_trace_is_told(void)
{
	struct tracefs_refusal why = { 0 };
	char path[TRACEFS_PATH];

	CHECK(tracefs_find(root, path) == -ENODEV);
	tracefs_explain(root, -ENODEV, &why);
	CHECK(strcmp(why.cause, "unbuilt") == 0);

	run("mkdir -p %s/sys/kernel/tracing");
	CHECK(tracefs_find(root, path) == -ENOENT);
	run("cd %s/sys/kernel && mkdir security && "
	    "echo 'none integrity [confidentiality]' >security/lockdown");
	CHECK(tracefs_find(root, path) == -EKEYREJECTED);
	tracefs_explain(root, -EKEYREJECTED, &why);
	CHECK(strcmp(why.cause, "lockdown") == 0);
	tracefs_explain(root, -EPERM, &why);
	CHECK(strcmp(why.cause, "lockdown") == 0);
	run("rm -r %s/sys/kernel/security");

	tracefs_explain(root, -EACCES, &why);
	CHECK(strcmp(why.cause, "permission") == 0);
	tracefs_explain(root, -EPERM, &why);
	CHECK(strcmp(why.cause, geteuid() == 0 ? "capability" : "permission") == 0);
	tracefs_explain(root, -EROFS, &why);
	CHECK(strcmp(why.cause, "read-only") == 0);
	tracefs_explain(root, -EIO, &why);
	CHECK(strcmp(why.cause, "other") == 0);
	CHECK(strstr(why.what, strerror(EIO)));
}

static void an_instance_is_made_and_removed(void)
{
	char path[TRACEFS_PATH];

	run("mkdir -p %s/sys/kernel/tracing/instances");
	CHECK(tracefs_instance_exists(root, 42) == 0);
	CHECK(tracefs_instance_make(root, 42) == 0);
	CHECK(tracefs_instance_exists(root, 42) == 1);
	CHECK(tracefs_instance_make(root, 42) == -EEXIST);
	CHECK(tracefs_instance(root, 42, path) == 0);
	CHECK(strstr(path, "/sys/kernel/tracing/instances/rtscope.42"));
	CHECK(tracefs_instance_remove(root, 42) == 0);
	CHECK(tracefs_instance_exists(root, 42) == 0);
	CHECK(tracefs_instance_remove(root, 42) == 0);
}

static void what_the_kernel_has_is_on_and_what_it_lacks_is_told(void)
{
	char path[TRACEFS_PATH];
	const int tid[] = { 7, 8 };

	CHECK(tracefs_instance_make(root, 1) == 0);
	CHECK(tracefs_instance(root, 1, path) == 0);
	run("cd %s/sys/kernel/tracing/instances/rtscope.1 && "
	    "mkdir -p events/sched/sched_switch events/sched/sched_waking "
	    "events/exceptions/page_fault_user events/task/task_rename && "
	    "touch events/task/task_rename/enable "
	    "events/sched/sched_switch/enable events/sched/sched_waking/enable "
	    "events/sched/sched_waking/trigger "
	    "events/exceptions/page_fault_user/enable "
	    "events/exceptions/page_fault_user/filter");

	CHECK(traceevents_enable(path, TRACE_SAMPLERS, &events) == 4);
	CHECK(events.on == 3);
	CHECK(result_of("sched", "sched_switch") == 0);
	CHECK(result_of("task", "task_rename") == 0);
	CHECK(result_of("preemptirq", "irq_disable") < 0);
	CHECK(traceevents_have(&events, "sched"));
	CHECK(!traceevents_have(&events, "preemptirq"));
	CHECK(strcmp(text_of(path, "events/sched/sched_switch/enable"), "1") == 0);
	/* not before it is known whose */
	CHECK(strcmp(text_of(path, "events/exceptions/page_fault_user/enable"), "") ==
	      0);

	traceevents_filter(path, TRACE_SAMPLERS, tid, 2, &events);
	CHECK(events.on == 4 && events.stack_err == 0);
	CHECK(strcmp(text_of(path, "events/exceptions/page_fault_user/filter"),
		     "common_pid == 7 || common_pid == 8") == 0);
	CHECK(strcmp(text_of(path, "events/exceptions/page_fault_user/enable"), "1") ==
	      0);
	CHECK(strcmp(text_of(path, "events/sched/sched_waking/trigger"),
		     "stacktrace if pid == 7 || pid == 8") == 0);
}

static void of_another_program_less_is_recorded_of_an_idle_cpu(void)
{
	char path[TRACEFS_PATH];
	const int tid[] = { 7, 8 };

	CHECK(tracefs_instance(root, 1, path) == 0);
	run("cd %s/sys/kernel/tracing/instances/rtscope.1/events && "
	    "mkdir -p power/cpu_idle sched/sched_wakeup && "
	    "touch sched/sched_wakeup/enable power/cpu_idle/enable "
	    "power/cpu_idle/filter "
	    "sched/sched_switch/filter");

	CHECK(traceevents_enable(path, TRACE_SAMPLERS, &events) == 6);
	CHECK(strcmp(text_of(path, "events/sched/sched_wakeup/enable"), "1") == 0);
	run("echo -n 0 >%s/sys/kernel/tracing/instances/rtscope.1/events/sched/"
	    "sched_wakeup/enable");
	CHECK(strcmp(text_of(path, "events/power/cpu_idle/filter"), "") == 0);
	CHECK(traceevents_enable(path, TRACE_CYCLES, &events) == 5);
	CHECK(result_of("sched", "sched_wakeup") == TRACEEVENTS_LEFT_OUT);
	CHECK(result_of("workqueue", "workqueue_queue_work") == TRACEEVENTS_LEFT_OUT);
	CHECK(strcmp(text_of(path, "events/sched/sched_wakeup/enable"), "0") == 0);
	CHECK(strcmp(text_of(path, "events/power/cpu_idle/filter"),
		     "state != 4294967295") == 0);
	CHECK(strcmp(text_of(path, "events/power/cpu_idle/enable"), "1") == 0);
	CHECK(strcmp(text_of(path, "events/sched/sched_switch/filter"), "") == 0);

	traceevents_filter(path, TRACE_CYCLES, tid, 2, &events);
	CHECK(strcmp(text_of(path, "events/sched/sched_waking/trigger"),
		     "stacktrace if common_pid != 0 && (pid == 7 || pid == 8)") == 0);
	run("cd %s/sys/kernel/tracing/instances/rtscope.1/events && "
	    "rm -r power sched/sched_wakeup");
}

static void more_threads_than_a_filter_takes_are_refused_and_not_cut(void)
{
	char path[TRACEFS_PATH];
	int tid[1000];

	for (int i = 0; i < 1000; i++)
		tid[i] = 100000 + i;
	CHECK(tracefs_instance(root, 1, path) == 0);
	CHECK(traceevents_enable(path, TRACE_SAMPLERS, &events) == 4);
	traceevents_filter(path, TRACE_SAMPLERS, tid, 1000, &events);
	CHECK(result_of("exceptions", "page_fault_user") == -E2BIG);
	CHECK(events.stack_err == -E2BIG);
	CHECK(events.on == 3);
}

int main(void)
{
	CHECK(mkdtemp(root));
	each_reason_for_no_trace_is_told();
	an_instance_is_made_and_removed();
	what_the_kernel_has_is_on_and_what_it_lacks_is_told();
	of_another_program_less_is_recorded_of_an_idle_cpu();
	more_threads_than_a_filter_takes_are_refused_and_not_cut();
	run("rm -r %s");
	return 0;
}
