/* SPDX-License-Identifier: MIT */
/*
 * irqpriority - policy and priority of an interrupt's thread, as a text that can be put
 * back: "fifo.50".
 */
#ifndef IRQPRIORITY_H
#define IRQPRIORITY_H

#include <stddef.h>

/* By thread id. Both return 0 or -errno: -ENODEV where it is no interrupt's thread, as
 * one whose interrupt was freed. */
int irqpriority_read(int tid, char *text, size_t size);
int irqpriority_write(int tid, const char *text);

#endif
