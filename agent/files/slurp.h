/* SPDX-License-Identifier: MIT */
/* slurp - reads a small text file of /proc or /sys into a buffer. */
#ifndef SLURP_H
#define SLURP_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads at most size - 1 bytes and ends them with NUL. Returns the number of bytes, or
 * -errno. What does not fit is cut: the caller chooses size for the file.
 */
long slurp(const char *path, char *text, size_t size);

/* The same from the start of an open file, for reading again and again. */
long slurp_fd(int fd, char *text, size_t size);

/* The file as one number; -errno if it cannot be read or starts with no digit. */
int slurp_int(const char *path, int64_t *out);

#endif
