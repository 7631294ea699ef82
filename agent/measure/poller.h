/* SPDX-License-Identifier: MIT */
/*
 * poller - a measuring thread that never sleeps: the longest gap in each period.
 *
 * It reads the clock in a loop. What lies between two readings, more than the loop
 * itself takes, was not this thread's: an interrupt, another thread, the host of a
 * virtual machine. The sample of a period is the longest gap that ended in it.
 */
#ifndef POLLER_H
#define POLLER_H

#include "measure/sampler.h"

/* The loop of a sampler; no system call. */
void poller_until_end(struct sampler *s);

#endif
