/* SPDX-License-Identifier: MIT */
#include "start/startoptions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int startoptions_groups(const char *text, gid_t *group, int most)
{
	unsigned long long number;
	char copy[16], *end;
	int groups = 0;

	for (; *text; text += strspn(text, ",")) {
		size_t size = strcspn(text, ",");

		if (groups == most || size >= sizeof(copy))
			return -EINVAL;
		snprintf(copy, sizeof(copy), "%.*s", (int)size, text);
		errno = 0;
		number = strtoull(copy, &end, 10);
		if (errno || !size || *end || number >= UINT32_MAX)
			return -EINVAL;
		group[groups++] = (gid_t)number;
		text += size;
	}
	return groups;
}

int startoptions_io(const char *text, int *class, int *level)
{
	if (text[0] < '1' || text[0] > '3' || text[1] != ':' || text[2] < '0' ||
	    text[2] > '7' || text[3])
		return -EINVAL;
	*class = text[0] - '0';
	*level = text[2] - '0';
	return 0;
}

const char *startoptions_misfit(const struct policy *p)
{
	const bool deadline = p->kind == POLICY_DEADLINE;

	if (policy_has_priority(p->kind) != (p->priority > 0))
		return p->priority ? "this policy takes no --priority"
				   : "this policy needs a --priority";
	if (deadline != (p->runtime_ns && p->period_ns))
		return deadline ? "policy deadline needs --runtime-ns and --period-ns"
				: "--runtime-ns is of policy deadline";
	return NULL;
}
