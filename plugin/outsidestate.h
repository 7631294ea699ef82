/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outsidestate - what the parts of the outside view share: its CPUs, its threads, what a
 * hook is given, and records.
 */
#ifndef OUTSIDESTATE_H
#define OUTSIDESTATE_H

#include <stdbool.h>
#include <stdint.h>

#include "arch.h"
#include "cpus.h"
#include "options.h"
#include "outsidefile.h"
#include "threads.h"

struct outside_timer {
	uint32_t how; /* detail of its release; 0: none */
	int64_t due_ns;
	int64_t monotonic_ns; /* the same by CLOCK_MONOTONIC */
	uint64_t task;        /* that it wakes; 0: not known */
	uint64_t stack;       /* its callback runs while the stack is below this, */
	uint64_t current;     /* of this task */
};

struct outside_cpu {
	uint64_t executed; /* instructions of programs */
	uint64_t current;  /* the task that it was switched to; 0: not known yet */
	bool awaits;  /* the next instruction of a program: current is the program's */
	bool entered; /* and has executed none since it was switched to */
	struct outside_timer timer;
};

/* A CPU is to execute an instruction of the program that is to be recorded. */
extern bool outside_awaits;

struct outside {
	const struct options *options;
	const struct arch *arch;
	struct qemu_plugin_register *argument[4], *result, *stack;
	struct qemu_plugin_register *unwound[ARCH_UNWOUND];
	unsigned int seen; /* bits of hooks whose arguments were checked */
	const char *wrong; /* the first whose arguments were not right */
	uint64_t began_ns; /* the program, last */
	struct outside_cpu cpu[CPUS_MAX];
};

extern struct outside outside;

struct outside_cpu *outside_cpu(void);

/* --- what a hook is given; 0: cannot be read ------------------------------------------ */

uint64_t outside_argument(unsigned int number);
uint64_t outside_stack(void);
uint64_t outside_value(uint64_t address, unsigned int bytes);
uint64_t outside_field(uint64_t task, enum options_field which, unsigned int bytes);

struct outside_task {
	uint32_t state;
	bool asleep;
};

struct outside_task outside_read_task(uint64_t task);
bool outside_in_kernel(uint64_t address);
bool outside_is_task(uint64_t address);

/* Whether a hard interrupt, an NMI or a softirq executes. */
bool outside_is_in_interrupt(void);

/* Whether a hook's arguments are still to be checked. */
bool outside_is_new(enum options_hook hook);
/* Returns `fits`; if it is false, the record is no good. */
bool outside_check(enum options_hook hook, bool fits);

/* --- threads and records -------------------------------------------------------------- */

/* NULL: not of the program. */
struct thread *outside_own(uint64_t task);

/* The executing CPU's own task, if it is of the program. */
struct thread *outside_current(void);

/* Who it is; told when it is first mentioned. Of two, only the last is good. */
struct thread *outside_tell(uint64_t task, unsigned int to_come);

void outside_put(enum outside_kind kind, unsigned int to_come, uint32_t thread,
		 uint32_t detail, uint64_t value);

/* With another number in place of the instructions of programs. */
void outside_put_with(enum outside_kind kind, unsigned int to_come, uint32_t thread,
		      uint32_t detail, uint64_t value, uint64_t user);

/* The executing CPU's task is to be seen where it goes on. */
void outside_await(void);

#endif
