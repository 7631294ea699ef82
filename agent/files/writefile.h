/* SPDX-License-Identifier: MIT */
/* writefile - writes a text into a small file of /proc or /sys. */
#ifndef WRITEFILE_H
#define WRITEFILE_H

/* In one call, into a file that is there; as a shell's redirection it shortens a plain
 * file. 0 or -errno. */
int writefile(const char *path, const char *text);

#endif
