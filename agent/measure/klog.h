/* SPDX-License-Identifier: MIT */
/*
 * klog - watches the kernel's log during a run: what it says then may be the cause.
 *
 * Reads /dev/kmsg from its end, without blocking, once a second. The host decides what a
 * message means; here nothing is left out but what is counted in lost.
 */
#ifndef KLOG_H
#define KLOG_H

#include "host/emit.h"

struct klog {
	int fd;
	const char *state; /* "watched", "denied" or "missing" */
	unsigned int sent;
	int64_t lost;
};

void klog_open(struct klog *k);
void klog_close(struct klog *k);

/* Emits a kmsg line for each new message; after a thousand they are only counted. */
void klog_drain(struct klog *k, struct emit *e);

#endif
