/* SPDX-License-Identifier: MIT */
#include "journal/irqpriority.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/slurp.h"
#include "thread/policy.h"

/* Its command line is empty: a program may call a thread of its own irq/9-acpi. */
static int check(int tid)
{
	char path[48], text[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	if (slurp(path, text, sizeof(text)) < 0 || strncmp(text, "irq/", 4) != 0)
		return -ENODEV;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", tid);
	return slurp(path, text, sizeof(text)) == 0 ? 0 : -ENODEV;
}

int irqpriority_read(int tid, char *text, size_t size)
{
	struct sched_param parameter;
	int err = check(tid);
	long policy;

	if (err)
		return err;
	policy = syscall(SYS_sched_getscheduler, tid);
	if (policy < 0 || syscall(SYS_sched_getparam, tid, &parameter) < 0)
		return -errno;
	snprintf(text, size, "%s.%d", policy_name((enum policy_kind)policy),
		 parameter.sched_priority);
	return 0;
}

int irqpriority_write(int tid, const char *text)
{
	struct sched_param parameter = { 0 };
	enum policy_kind policy;
	char name[16];
	int err = check(tid);

	if (err)
		return err;
	if (sscanf(text, "%15[a-z].%d", name, &parameter.sched_priority) != 2 ||
	    policy_parse(name, &policy))
		return -EINVAL;
	return syscall(SYS_sched_setscheduler, tid, (int)policy, &parameter) < 0
		       ? -errno
		       : 0;
}
