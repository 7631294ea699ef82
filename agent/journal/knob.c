/* SPDX-License-Identifier: MIT */
#include "journal/knob.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files/slurp.h"
#include "files/writefile.h"
#include "journal/irqpriority.h"
#include "journal/memgroup.h"
#include "journal/netsetting.h"
#include "journal/serialline.h"
#include "journal/shieldgroup.h"
#include "machine/tracefs.h"

/* What is made and removed has one of two values; "present" is not ours. */
#define ABSENT "absent"

/* A memory cgroup made for a load. */
#define MEMORY_GROUP "memory_group"

/* A tracing instance, the same way; whoever made it is in its name. */
#define TRACE_INSTANCE "trace_instance"

/* A serial line, whose index is the number of its ttyS. */
#define SERIAL_LINE "serial_line"

/* How an interface delays its interrupts, by its index; who goes before an interrupt's
 * thread, by its id. */
#define COALESCING   "coalescing"
#define IRQ_PRIORITY "irq_priority"

/* A control group with CPUs of its own, and what the kernel needs before there is one. */
#define SHIELD  "shield"
#define CPUSETS "cgroup_cpusets"

#define CPU    "/sys/devices/system/cpu"
#define SYSCTL "/proc/sys"
#define NET    "/sys/class/net"

#define TRACING "/sys/kernel/tracing" /* mounted for the read or write: tracefs.h */

#define FILE_MAX_BYTES 1024 /* every governor or tracer that there is, in one line */

enum form {
	PLAIN,
	PER_CPU, /* a file for each: measure sets it on those it measures */
	CHOSEN,  /* "always [madvise] never": the file has all, one is marked */
	THING,   /* made and removed, not set */
	CALLS,   /* read and set by calls, not by a file */
};

/* A number stands for '#' in a path: the index, or for two of them what knob.h says; the
 * name of an interface for '@': the index is its. */
static const struct {
	const char *name;
	const char *path;
	enum form form;
} knobs[] = {
	{ "governor", CPU "/cpu#/cpufreq/scaling_governor", PER_CPU },
	{ "min_freq", CPU "/cpufreq/policy#/scaling_min_freq", PLAIN },
	{ "energy_preference", CPU "/cpufreq/policy#/energy_performance_preference",
	  PLAIN },
	{ "no_turbo", CPU "/intel_pstate/no_turbo", PLAIN },
	{ "boost", CPU "/cpufreq/boost", PLAIN },
	{ "idle_state", CPU "/cpu#/cpuidle/state#/disable", PLAIN },
	{ "irq_affinity", "/proc/irq/#/smp_affinity_list", PLAIN },
	{ "default_irq_affinity", "/proc/irq/default_smp_affinity", PLAIN },
	{ "workqueue_cpumask", "/sys/devices/virtual/workqueue/cpumask", PLAIN },
	{ "transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled",
	  CHOSEN },
	{ "ksm_run", "/sys/kernel/mm/ksm/run", PLAIN },
	{ "numa_balancing", SYSCTL "/kernel/numa_balancing", PLAIN },
	{ "compact_unevictable_allowed", SYSCTL "/vm/compact_unevictable_allowed",
	  PLAIN },
	{ "rt_runtime_us", SYSCTL "/kernel/sched_rt_runtime_us", PLAIN },
	{ "watchdog", SYSCTL "/kernel/watchdog", PLAIN },
	{ "watchdog_cpumask", SYSCTL "/kernel/watchdog_cpumask", PLAIN },
	{ "stack_tracer", SYSCTL "/kernel/stack_tracer_enabled", PLAIN },
	{ "fair_server", KNOB_DEBUGFS "/sched/fair_server/cpu#/runtime", PLAIN },
	{ "preempt", KNOB_DEBUGFS "/sched/preempt", CHOSEN },
	{ "busy_poll", SYSCTL "/net/core/busy_poll", PLAIN },
	{ "busy_read", SYSCTL "/net/core/busy_read", PLAIN },
	{ "gro_flush_timeout", NET "/@/gro_flush_timeout", PLAIN },
	{ "napi_threaded", NET "/@/threaded", PLAIN },
	{ COALESCING, NET "/@/device/uevent", CALLS },
	{ IRQ_PRIORITY, "/proc/#/stat", CALLS },
	{ CPUSETS, SHIELDGROUP_ROOT "/cgroup.subtree_control", THING },
	{ SHIELD, SHIELDGROUP_PATH, THING },
	{ "tracing_thresh", TRACING "/tracing_thresh", PLAIN },
	{ "hwlat_mode", TRACING "/hwlat_detector/mode", CHOSEN },
	{ "hwlat_width", TRACING "/hwlat_detector/width", PLAIN },
	{ "hwlat_window", TRACING "/hwlat_detector/window", PLAIN },
	{ "timerlat_period", TRACING "/osnoise/timerlat_period_us", PLAIN },
	{ "osnoise_cpus", TRACING "/osnoise/cpus", PLAIN },
	{ "osnoise_stop", TRACING "/osnoise/stop_tracing_us", PLAIN },
	{ "osnoise_stop_total", TRACING "/osnoise/stop_tracing_total_us", PLAIN },
	{ SERIAL_LINE, NULL, CALLS },
	{ MEMORY_GROUP, NULL, THING },
	{ TRACE_INSTANCE, NULL, THING },
};

#define KNOBS (sizeof(knobs) / sizeof(knobs[0]))

static int find(const char *name)
{
	for (size_t i = 0; i < KNOBS; i++)
		if (strcmp(knobs[i].name, name) == 0)
			return (int)i;
	return -1;
}

bool knob_known(const char *name)
{
	return find(name) >= 0;
}

bool knob_is_per_cpu(const char *name)
{
	int i = find(name);

	return i >= 0 && knobs[i].form == PER_CPU;
}

bool knob_value_ok(const char *value)
{
	size_t size = strlen(value);

	if (size == 0 || size >= KNOB_VALUE_MAX)
		return false;
	for (; *value; value++)
		if (!isalnum((unsigned char)*value) && !strchr("-_.,", *value))
			return false;
	return true;
}

static bool is_thing(const char *name)
{
	int i = find(name);

	return i >= 0 && knobs[i].form == THING;
}

static bool is_called(const char *name)
{
	int i = find(name);

	return i >= 0 && knobs[i].form == CALLS;
}

/* A setting goes with the interface or thread that has it; not with a line. */
static int gone_is(int err)
{
	return err == -ENODEV ? KNOB_GONE : err;
}

static int call_read(const struct knob_place *place, char value[KNOB_VALUE_MAX])
{
	if (strcmp(place->name, COALESCING) == 0)
		return gone_is(netsetting_read(place->index, value, KNOB_VALUE_MAX));
	if (strcmp(place->name, IRQ_PRIORITY) == 0)
		return gone_is(irqpriority_read(place->index, value, KNOB_VALUE_MAX));
	return serialline_read(place->index, value, KNOB_VALUE_MAX);
}

static int call_write(const struct knob_place *place, const char *value)
{
	if (strcmp(place->name, COALESCING) == 0)
		return gone_is(netsetting_write(place->index, value));
	if (strcmp(place->name, IRQ_PRIORITY) == 0)
		return gone_is(irqpriority_write(place->index, value));
	return serialline_write(place->index, value);
}

/* 1 or 0, or -errno. */
static int thing_exists(const struct knob_place *place)
{
	if (strcmp(place->name, CPUSETS) == 0)
		return shieldgroup_has_cpusets(place->root);
	if (strcmp(place->name, SHIELD) == 0)
		return shieldgroup_exists(place->root);
	if (strcmp(place->name, TRACE_INSTANCE) == 0)
		return tracefs_instance_exists(place->root, place->index);
	return memgroup_exists(place->index);
}

static int thing_write(const struct knob_place *place, const char *value)
{
	bool remove = strcmp(value, ABSENT) == 0;

	if (strcmp(place->name, CPUSETS) == 0)
		return shieldgroup_set_cpusets(place->root, !remove);
	if (strcmp(place->name, SHIELD) == 0)
		return remove ? shieldgroup_remove(place->root)
			      : shieldgroup_make(place->root, value);
	if (strcmp(place->name, TRACE_INSTANCE) == 0)
		return remove ? tracefs_instance_remove(place->root, place->index)
			      : tracefs_instance_make(place->root, place->index);
	return remove ? memgroup_remove(place->index)
		      : memgroup_make(place->index, value);
}

static int path_of(const struct knob_place *place, char *path, size_t size)
{
	int i = find(place->name), number = place->index, err;
	char name[IF_NAMESIZE];
	const char *from, *hash;
	size_t used;

	if (i < 0 || !knobs[i].path)
		return -EINVAL;
	used = (size_t)snprintf(path, size, "%s", place->root);
	from = knobs[i].path;
	if (strchr(from, '@')) {
		err = netsetting_name(place->index, name);
		if (err)
			return gone_is(err);
		used += (size_t)snprintf(path + used, size - used, NET "/%s", name);
		from = strchr(from, '@') + 1;
	}
	hash = strchr(from, '#');
	if (hash && strchr(hash + 1, '#'))
		number %= KNOB_STRIDE;
	for (; hash && used < size; hash = strchr(from, '#')) {
		used += (size_t)snprintf(path + used, size - used, "%.*s%d",
					 (int)(hash - from), from, number);
		from = hash + 1;
		number = place->index / KNOB_STRIDE;
	}
	if (used < size)
		used += (size_t)snprintf(path + used, size - used, "%s", from);
	return used < size ? 0 : -ENAMETOOLONG;
}

int knob_path(const struct knob_place *place, char *path, size_t size)
{
	const struct knob_place here = { "", place->name, place->index };

	return path_of(&here, path, size);
}

/* Its file, where there is one: those of tracing only when that is mounted. */
static int file_of(const struct knob_place *place, char *path, size_t size)
{
	char tracefs[TRACEFS_PATH];
	int err = path_of(place, path, size);

	if (!err && strncmp(path + strlen(place->root), TRACING, strlen(TRACING)) == 0)
		err = tracefs_find(place->root, tracefs);
	return err;
}

/* Leaves what stands between [ ], or ( ) as the scheduler's own files mark it. */
static int keep_chosen(char *text)
{
	char *open = strpbrk(text, "[(");
	char *close = open ? strpbrk(open, "])") : NULL;

	if (!close)
		return -EINVAL;
	*close = '\0';
	memmove(text, open + 1, strlen(open + 1) + 1);
	return 0;
}

int knob_read(const struct knob_place *place, char value[KNOB_VALUE_MAX])
{
	char path[256], text[FILE_MAX_BYTES];
	long n;
	int err;

	if (is_thing(place->name)) {
		err = thing_exists(place);
		snprintf(value, KNOB_VALUE_MAX, "%s", err > 0 ? "present" : ABSENT);
		return err < 0 ? err : 0;
	}
	if (is_called(place->name))
		return call_read(place, value);
	err = file_of(place, path, sizeof(path));
	if (err)
		return err;
	n = slurp(path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	text[strcspn(text, "\n")] = '\0';
	err = knobs[find(place->name)].form == CHOSEN ? keep_chosen(text) : 0;
	if (err)
		return err;
	if (strlen(text) >= KNOB_VALUE_MAX)
		return -EOVERFLOW; /* a part of it could not be put back */
	snprintf(value, KNOB_VALUE_MAX, "%s", text);
	return 0;
}

int knob_write(const struct knob_place *place, const char *value)
{
	char path[256], got[KNOB_VALUE_MAX];
	int err;

	if (is_thing(place->name))
		return thing_write(place, value);

	if (is_called(place->name)) {
		err = call_write(place, value);
	} else {
		err = file_of(place, path, sizeof(path));
		if (!err)
			err = writefile(path, value);
	}
	if (!err)
		err = knob_read(place, got);
	if (!err && strcmp(got, value) != 0)
		err = KNOB_DID_NOT_HOLD;
	return err;
}
