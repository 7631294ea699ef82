/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * threads - the tasks that the outside view has met, by their addresses.
 *
 * An address is of another task once the task that had it is gone: a new task is told by
 * thread_renew().
 */
#ifndef THREADS_H
#define THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "sites.h"

struct thread {
	uint64_t task; /* its address; 0: a free place */
	uint32_t id, process;
	uint32_t parent;
	uint64_t name[2];
	bool own;   /* of the program, or a descendant */
	bool told;  /* it has a record with its name */
	bool calls; /* is in a system call */
	uint32_t call;
	uint64_t registers;         /* of its call, where the kernel keeps them */
	uint64_t returns_to;        /* behind its call */
	uint64_t waits_for;         /* a lock whose slow path it has entered; 0: none */
	uint32_t waits_kind;        /* detail of its record */
	uint64_t fault, fault_user; /* of its latest page fault: see outsidecalls.c */
	bool uses;                  /* is in a function of the program, options->use, */
	unsigned int use;           /* this one, */
	uint64_t use_returns;       /* which returns to here */
	uint64_t use_stack;         /* and was entered with this stack pointer */
	struct sites sites;
	uint32_t start, number; /* see births.h */
	bool born;              /* it has begun */
};

/* Never NULL; ends QEMU if memory is short. A new one is all zero but its address. The
 * pointer is good until the next call. */
struct thread *thread_at(uint64_t task);

/* NULL: never met. */
struct thread *thread_known(uint64_t task);

/* Forgets what had this address. */
struct thread *thread_renew(uint64_t task);

#endif
