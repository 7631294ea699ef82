/* SPDX-License-Identifier: MIT */
/* tree - removes a directory that rtscope made, with what is in it. */
#ifndef TREE_H
#define TREE_H

/*
 * Follows no link and stays on one file system. Refuses (-EINVAL) a path whose last part
 * does not begin with "rtscope-": it removes nothing that rtscope did not make. Returns
 * 0 (also when there is none) or -errno.
 */
int tree_remove(const char *path);

#endif
