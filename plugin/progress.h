/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * progress - reports how far the board is, and ends QEMU when the host is gone.
 *
 * A separate thread reads what time it is on the board, which is written at the end of
 * each turn. It touches neither CPUs nor devices, so it changes no result.
 *
 * The file holds one line of fixed length, written anew some times a second: virtual
 * time, and virtual time when the first mark had been seen (0: none yet), in ns.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdint.h>

/* Also watches standard input: at its end QEMU ends at once. Returns 0, or -errno.
 * `marks` is how many marks there were; it and the path must stay. */
int progress_begin(const char *path, const uint64_t *marks);

#endif
