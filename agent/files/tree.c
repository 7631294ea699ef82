/* SPDX-License-Identifier: MIT */
#include "files/tree.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>

#define OUR_PREFIX "rtscope-"
#define OPEN_DIRS  16

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	remove(path); /* what cannot go makes its directory stay, and that is reported */
	return 0;
}

int tree_remove(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (strncmp(slash ? slash + 1 : path, OUR_PREFIX, strlen(OUR_PREFIX)) != 0)
		return -EINVAL;
	if (nftw(path, remove_one, OPEN_DIRS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0) {
		struct stat st;

		return lstat(path, &st) == 0 ? -ENOTEMPTY : 0;
	}
	return errno == ENOENT ? 0 : -errno;
}
