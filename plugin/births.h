/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * births - the threads of each start of the program, in the order in which they are
 * created, and which of them are to stand still before they begin.
 */
#ifndef BIRTHS_H
#define BIRTHS_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "threads.h"

void births_init(const struct options *options);

/* The first thread of a new start. */
void births_begin_start(struct thread *first);

/* A new thread of the program; `start` is that of its creator. */
void births_add(struct thread *child, uint32_t start);

/* Before an instruction of the thread in a program, at a virtual time: the ns for which
 * it is to stand still; 0: none. The first thread begins with the program; others where
 * they have a real-time priority, as until then they wait for who makes them. */
uint64_t births_hold_ns(struct thread *t, bool is_realtime, uint64_t now_ns);

#endif
