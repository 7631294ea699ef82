/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outsidetime - which timer wakes a thread, and when it was due.
 *
 * A timer's callback wakes whom it is for before it returns. So the timer is remembered
 * until then: as long as the CPU's stack is below where it was when the callback began.
 */
#ifndef OUTSIDETIME_H
#define OUTSIDETIME_H

#include <stdint.h>

#include "options.h"

/* Where the callback of a timer begins. */
void outsidetime_at_timer(enum options_hook hook, unsigned int to_come);

/* Where a task is woken, before that is recorded. */
void outsidetime_at_wake(uint64_t task, uint32_t thread, unsigned int to_come);

/* When the guest's clock reaches what a timer waits for; INT64_MIN: not known. */
int64_t outsidetime_due_ns(uint64_t timer);

/* The task that the timer of a sleep wakes. */
uint64_t outsidetime_task(uint64_t timer);

#endif
