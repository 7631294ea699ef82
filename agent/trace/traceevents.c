/* SPDX-License-Identifier: MIT */
#include "trace/traceevents.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine/tracefs.h"

#define FILTER_BYTES 3500 /* the kernel takes a page */

/* What the kernel lacks is told, not left out: which architecture or configuration has
 * what differs. osnoise events come only while somebody runs that tracer. */
const struct trace_event trace_events[] = {
	{ "sched", "sched_switch", TRACE_ALL },
	{ "sched", "sched_waking", TRACE_ALL },
	{ "sched", "sched_wakeup", TRACE_ALL },
	{ "sched", "sched_migrate_task", TRACE_ALL },
	{ "sched", "sched_pi_setprio", TRACE_ALL },
	{ "task", "task_rename", TRACE_ALL },
	{ "irq", "irq_handler_entry", TRACE_ALL },
	{ "irq", "irq_handler_exit", TRACE_ALL },
	{ "irq", "softirq_raise", TRACE_ALL },
	{ "irq", "softirq_entry", TRACE_ALL },
	{ "irq", "softirq_exit", TRACE_ALL },
	{ "irq", "tasklet_entry", TRACE_ALL },
	{ "irq", "tasklet_exit", TRACE_ALL },
	{ "irq_vectors", "local_timer_entry", TRACE_ALL },
	{ "irq_vectors", "local_timer_exit", TRACE_ALL },
	{ "irq_vectors", "reschedule_entry", TRACE_ALL },
	{ "irq_vectors", "reschedule_exit", TRACE_ALL },
	{ "irq_vectors", "call_function_entry", TRACE_ALL },
	{ "irq_vectors", "call_function_exit", TRACE_ALL },
	{ "irq_vectors", "call_function_single_entry", TRACE_ALL },
	{ "irq_vectors", "call_function_single_exit", TRACE_ALL },
	{ "irq_vectors", "irq_work_entry", TRACE_ALL },
	{ "irq_vectors", "irq_work_exit", TRACE_ALL },
	{ "irq_vectors", "thermal_apic_entry", TRACE_ALL },
	{ "irq_vectors", "thermal_apic_exit", TRACE_ALL },
	{ "irq_vectors", "threshold_apic_entry", TRACE_ALL },
	{ "irq_vectors", "threshold_apic_exit", TRACE_ALL },
	{ "irq_vectors", "error_apic_entry", TRACE_ALL },
	{ "irq_vectors", "error_apic_exit", TRACE_ALL },
	{ "irq_vectors", "spurious_apic_entry", TRACE_ALL },
	{ "irq_vectors", "spurious_apic_exit", TRACE_ALL },
	{ "irq_vectors", "x86_platform_ipi_entry", TRACE_ALL },
	{ "irq_vectors", "x86_platform_ipi_exit", TRACE_ALL },
	{ "ipi", "ipi_entry", TRACE_ALL },
	{ "ipi", "ipi_exit", TRACE_ALL },
	{ "ipi", "ipi_raise", TRACE_ALL },
	{ "ipi", "ipi_send_cpu", TRACE_ALL },
	{ "ipi", "ipi_send_cpumask", TRACE_ALL },
	{ "csd", "csd_function_entry", TRACE_ALL },
	{ "csd", "csd_function_exit", TRACE_ALL },
	{ "nmi", "nmi_handler", TRACE_ALL },
	{ "timer", "hrtimer_start", TRACE_ALL },
	{ "timer", "hrtimer_cancel", TRACE_ALL },
	{ "timer", "hrtimer_expire_entry", TRACE_ALL },
	{ "timer", "hrtimer_expire_exit", TRACE_ALL },
	{ "timer", "timer_expire_entry", TRACE_ALL },
	{ "timer", "timer_expire_exit", TRACE_ALL },
	{ "power", "cpu_idle", TRACE_ALL },
	{ "power", "cpu_frequency", TRACE_ALL },
	{ "workqueue", "workqueue_queue_work", TRACE_ALL },
	{ "workqueue", "workqueue_execute_start", TRACE_ALL },
	{ "workqueue", "workqueue_execute_end", TRACE_ALL },
	{ "cgroup", "cgroup_freeze", TRACE_ALL },
	{ "cgroup", "cgroup_unfreeze", TRACE_ALL },
	{ "exceptions", "page_fault_user", TRACE_OURS },
	{ "exceptions", "page_fault_kernel", TRACE_OURS },
	{ "preemptirq", "irq_disable", TRACE_ALL },
	{ "preemptirq", "irq_enable", TRACE_ALL },
	{ "preemptirq", "preempt_disable", TRACE_ALL },
	{ "preemptirq", "preempt_enable", TRACE_ALL },
	{ "osnoise", "irq_noise", TRACE_ALL },
	{ "osnoise", "nmi_noise", TRACE_ALL },
	{ "osnoise", "softirq_noise", TRACE_ALL },
	{ "osnoise", "thread_noise", TRACE_ALL },
	{ "osnoise", "sample_threshold", TRACE_ALL },
};

#define EVENTS (sizeof(trace_events) / sizeof(trace_events[0]))

_Static_assert(EVENTS <= TRACEEVENTS_MAX, "trace_enabled has no room for all events");

/* With TRACE_CYCLES: what comes in each wake-up and is shown by other events, too, is not
 * recorded: no filter. One that discards an event costs half as much as the event. */
static const struct {
	const char *name, *filter;
} of_cycles[] = {
	{ "sched_wakeup", NULL },
	{ "workqueue_queue_work", NULL },
	{ "hrtimer_cancel", NULL },
	/* of an idle CPU, the timer's callback shows the interrupt */
	{ "local_timer_entry", "common_pid != 0" },
	{ "local_timer_exit", "common_pid != 0" },
	/* not the tick's, which idle CPUs set: the task's, or one that sets itself */
	{ "hrtimer_start", "common_pid != 0 || common_flags & 8" },
	{ "cpu_idle", "state != 4294967295" }, /* not that it was left */
};

unsigned int traceevents_count(void)
{
	return EVENTS;
}

static void path_of(const struct trace_event *e, const char *file, char *path,
		    size_t size)
{
	snprintf(path, size, "events/%s/%s/%s", e->system, e->name, file);
}

static int enable(const char *instance, const struct trace_event *e, enum trace_use use)
{
	const size_t special = sizeof(of_cycles) / sizeof(of_cycles[0]);
	char path[128];

	for (size_t i = 0; use == TRACE_CYCLES && i < special; i++) {
		if (strcmp(e->name, of_cycles[i].name) != 0)
			continue;
		if (!of_cycles[i].filter)
			return TRACEEVENTS_LEFT_OUT;
		path_of(e, "filter", path, sizeof(path));
		tracefs_write(instance, path, of_cycles[i].filter); /* else all come */
	}
	path_of(e, "enable", path, sizeof(path));
	return tracefs_write(instance, path, "1");
}

unsigned int traceevents_enable(const char *instance, enum trace_use use,
				struct trace_enabled *out)
{
	char path[128], whole[2 * TRACEFS_PATH];
	unsigned int known = 0;

	*out = (struct trace_enabled){ 0 };
	for (unsigned int i = 0; i < EVENTS; i++) {
		if (trace_events[i].filter == TRACE_ALL) {
			out->err[i] = enable(instance, &trace_events[i], use);
		} else {
			path_of(&trace_events[i], "enable", path, sizeof(path));
			snprintf(whole, sizeof(whole), "%s/%s", instance, path);
			out->err[i] = access(whole, F_OK) < 0 ? -errno : 0;
		}
		known += out->err[i] == 0;
		out->on += out->err[i] == 0 && trace_events[i].filter == TRACE_ALL;
	}
	return known;
}

bool traceevents_have(const struct trace_enabled *events, const char *system)
{
	for (unsigned int i = 0; i < EVENTS; i++)
		if (!events->err[i] && strcmp(trace_events[i].system, system) == 0)
			return true;
	return false;
}

/* Returns 0, or -E2BIG if there are more threads than the kernel takes at once. */
static int write_filter(const char *field, const int *tid, unsigned int tids,
			char *text)
{
	size_t used = strlen(text);

	for (unsigned int i = 0; i < tids; i++) {
		if (used > FILTER_BYTES - 40)
			return -E2BIG;
		used += (size_t)snprintf(text + used, FILTER_BYTES - used, "%s%s == %d",
					 i ? " || " : "", field, tid[i]);
	}
	return 0;
}

static int enable_filtered(const char *instance, const struct trace_event *e,
			   const char *filter)
{
	char path[128];
	int err;

	path_of(e, "filter", path, sizeof(path));
	err = tracefs_write(instance, path, filter);
	path_of(e, "enable", path, sizeof(path));
	return err ? err : tracefs_write(instance, path, "1");
}

#define STACK          "stacktrace if "
#define STACK_NOT_IDLE STACK "common_pid != 0 && ("

void traceevents_filter(const char *instance, enum trace_use use, const int *tid,
			unsigned int tids, struct trace_enabled *out)
{
	const bool not_idle = use == TRACE_CYCLES;
	char filter[FILTER_BYTES] = "", stack[FILTER_BYTES];
	int err = write_filter("common_pid", tid, tids, filter);

	for (unsigned int i = 0; i < EVENTS; i++) {
		if (trace_events[i].filter != TRACE_OURS || out->err[i])
			continue;
		out->err[i] =
			err ? err : enable_filtered(instance, &trace_events[i], filter);
		out->on += out->err[i] == 0;
	}
	snprintf(stack, sizeof(stack), "%s", not_idle ? STACK_NOT_IDLE : STACK);
	out->stack_err = write_filter("pid", tid, tids, stack);
	if (not_idle)
		strcat(stack, ")"); /* write_filter() leaves room */
	if (!out->stack_err)
		out->stack_err = tracefs_write(
			instance, "events/sched/sched_waking/trigger", stack);
}
