/* SPDX-License-Identifier: MIT */
#include "tasks/schedattr.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread/policy.h"

#define POLICY_EXT 7 /* SCHED_EXT: the measuring threads never have it */

_Static_assert(sizeof(struct schedattr) == 56, "SCHED_ATTR_SIZE_VER1");

int schedattr_get(int tid, struct schedattr *out)
{
	*out = (struct schedattr){ .size = sizeof(*out) };
	return syscall(SYS_sched_getattr, tid, out, sizeof(*out), 0) < 0 ? -errno : 0;
}

const char *schedattr_policy_name(uint32_t policy)
{
	const char *name = policy_name((enum policy_kind)policy);

	if (policy == POLICY_EXT)
		return "ext";
	return strcmp(name, "unknown") == 0 ? NULL : name;
}
