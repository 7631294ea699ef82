/* SPDX-License-Identifier: MIT */
/*
 * cyclewaits - the calls in which a loop waits for the first of several things: poll,
 * select, epoll, io_uring and sigtimedwait. Who wakes a thread where its timer woke it
 * before wants something else than its cycle.
 */
#ifndef CYCLEWAITS_H
#define CYCLEWAITS_H

#include <stdbool.h>

/* Whether the calls of a process have the numbers of our own: it is of the same kind. */
bool cyclewaits_known(int pid);

/* Has the kernel record begin and end of these calls of some threads in an instance, or
 * of all if there are too many; without them nothing is known of such waits. */
void cyclewaits_record(const char *instance, const int *tid, unsigned int tids);

#endif
