/* SPDX-License-Identifier: MIT */
#include "thread/usage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "files/slurp.h"
#include "thread/clock.h"

/* From /proc/thread-self/sched, which needs CONFIG_SCHED_DEBUG before Linux 6.15. */
static int64_t migrations(void)
{
	char text[4096];
	const char *field;

	if (slurp("/proc/thread-self/sched", text, sizeof(text)) < 0)
		return -1;
	field = strstr(text, "nr_migrations");
	field = field ? strchr(field, ':') : NULL;
	return field ? strtoll(field + 1, NULL, 10) : -1;
}

struct usage usage_now(void)
{
	struct rusage r;
	struct timespec cpu;
	int64_t moved = migrations();

	getrusage(RUSAGE_THREAD, &r);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	return (struct usage){
		.minor_faults = r.ru_minflt,
		.major_faults = r.ru_majflt,
		.voluntary_switches = r.ru_nvcsw,
		.involuntary_switches = r.ru_nivcsw,
		.migrations = moved,
		.cpu_time_ns = timespec_ns(cpu),
	};
}

struct usage usage_since(const struct usage *before)
{
	struct usage now = usage_now();

	now.minor_faults -= before->minor_faults;
	now.major_faults -= before->major_faults;
	now.voluntary_switches -= before->voluntary_switches;
	now.involuntary_switches -= before->involuntary_switches;
	now.cpu_time_ns -= before->cpu_time_ns;
	if (now.migrations >= 0)
		now.migrations -= before->migrations;
	return now;
}

int64_t usage_locked_kb(void)
{
	char text[4096];
	const char *field;

	if (slurp("/proc/self/status", text, sizeof(text)) < 0)
		return 0;
	field = strstr(text, "VmLck:");
	return field ? strtoll(field + strlen("VmLck:"), NULL, 10) : 0;
}
