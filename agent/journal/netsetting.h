/* SPDX-License-Identifier: MIT */
/*
 * netsetting - how a network interface delays its interrupts, as a text that can be put
 * back: microseconds, packets and whether the driver adapts, "50.0.1" (ethtool -C).
 */
#ifndef NETSETTING_H
#define NETSETTING_H

#include <stddef.h>

/* By the index of the interface. Both return 0 or -errno: -ENODEV where it is gone,
 * -EOPNOTSUPP where its driver does not tell. */
int netsetting_read(int index, char *text, size_t size);
int netsetting_write(int index, const char *text);

/* Its name, IF_NAMESIZE bytes. 0, or -ENODEV. */
int netsetting_name(int index, char *name);

#endif
