/* SPDX-License-Identifier: MIT */
#include "machine/procstat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "files/slurp.h"

int procstat_parse(const char *text, struct procstat *out)
{
	/* The name may hold anything, also ") R 1 ("; the last ')' ends it. */
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	unsigned long long user, system;
	long long waited_user, waited_system, started;
	size_t size;

	if (!open || !close || close < open)
		return -EINVAL;

	*out = (struct procstat){ 0 };
	if (sscanf(text, "%d", &out->pid) != 1 ||
	    sscanf(close + 1,
		   " %c %d %*d %*d %*d %*d %lu %*u %*u %*u %*u %llu %llu %lld %lld %*d "
		   "%*d "
		   "%*d %*d %lld %*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u "
		   "%*u "
		   "%*u %*d %d",
		   &out->state, &out->parent, &out->flags, &user, &system, &waited_user,
		   &waited_system, &started, &out->cpu) != 9)
		return -EINVAL;

	out->cpu_ticks = (int64_t)(user + system);
	out->children_ticks = waited_user + waited_system;
	out->started_ticks = started;
	size = (size_t)(close - open - 1);
	if (size >= sizeof(out->name))
		size = sizeof(out->name) - 1;
	memcpy(out->name, open + 1, size);
	return 0;
}

int procstat_read(int pid, struct procstat *out)
{
	char path[64], text[1024];
	long n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	n = slurp(path, text, sizeof(text));
	return n < 0 ? (int)n : procstat_parse(text, out);
}
