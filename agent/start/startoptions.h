/* SPDX-License-Identifier: MIT */
/* startoptions - the values of the options that start alone has. */
#ifndef STARTOPTIONS_H
#define STARTOPTIONS_H

#include <stddef.h>
#include <sys/types.h>

#include "thread/policy.h"

/* "27,100,998", "" for none. How many, at most `most`; -EINVAL. */
int startoptions_groups(const char *text, gid_t *group, int most);

/* CLASS:LEVEL, numbers of ioprio_set(2). 0 or -EINVAL. */
int startoptions_io(const char *text, int *class, int *level);

/* Why priority and times do not fit the policy; NULL: they do. */
const char *startoptions_misfit(const struct policy *policy);

#endif
