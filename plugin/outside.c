/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "outside.h"

#include <stdio.h>
#include <string.h>

#include "births.h"
#include "clock.h"
#include "code.h"
#include "outsidecalls.h"
#include "outsidestate.h"
#include "outsidetime.h"
#include "registers.h"
#include "sites.h"
#include "state.h"
#include "usermemory.h"
#include "uses.h"

/* kernel/sched/core.c, kernel/locking/: bits of an owner that are none of its address */
#define LOCK_BITS UINT64_C(7)

/* RWSEM_READER_OWNED: then the owner is any reader of the past */
#define LOCK_READ UINT64_C(1)

enum { HELD_LENDING = 1, HELD_FUTEX, HELD_MUTEX, HELD_WRITTEN, HELD_READ };

int outside_init(const struct options *options, const struct arch *arch)
{
	int err = options->code ? code_init(options->code, options->code_units) : 0;

	if (err)
		return err;
	outside.options = options;
	births_init(options);
	outside.arch = arch;
	return outsidefile_init(options, arch->name);
}

const char *outside_registers(void)
{
	const struct arch *arch = outside.arch;

	for (unsigned int i = 0; i < 4; i++) {
		outside.argument[i] = registers_find(arch->argument[i]);
		if (!outside.argument[i])
			return arch->argument[i];
	}
	for (unsigned int i = 0; i < ARCH_UNWOUND && arch->unwound[i].name; i++) {
		outside.unwound[i] = registers_find(arch->unwound[i].name);
		if (!outside.unwound[i])
			return arch->unwound[i].name;
	}
	if (!usermemory_init(arch->page_tables))
		return arch->page_tables;
	outside.result = registers_find(arch->result);
	outside.stack = registers_find(arch->stack);
	return !outside.result ? arch->result : outside.stack ? NULL : arch->stack;
}

/* Hooks of the kernel first, from 1 on, then those of the program. */
unsigned int outside_hook_at(uint64_t address)
{
	unsigned int use;

	for (unsigned int i = 0; i < OPTIONS_HOOKS; i++)
		if (address == outside.options->hook[i])
			return 1 + i;
	if (outside_in_kernel(address) || !outside_is_program(address))
		return 0;
	sites_note_code(address);
	use = uses_at(outside.options, address);
	return use ? OPTIONS_HOOKS + use : 0;
}

bool outside_is_program(uint64_t address)
{
	return address < outside.arch->firmware ||
	       address >= outside.arch->firmware_end;
}

/* --- switches ------------------------------------------------------------------------- */

/* The task that owns a lock, by the word in which the kernel keeps it. */
static uint64_t owner_at(uint64_t address)
{
	return outside_value(address, 8) & ~LOCK_BITS;
}

static void put_held(struct thread *t, uint32_t kind, uint64_t owner,
		     unsigned int to_come)
{
	uint32_t self = t->id, holder = 0;

	if (outside_is_task(owner))
		holder = outside_tell(owner, to_come)->id;
	outside_put(OUTSIDE_HELD, to_come, self, kind, holder);
}

static uint32_t lending_kind(const struct thread *t)
{
	const struct arch *arch = outside.arch;
	const uint32_t call = t->call & ~OUTSIDE_NARROW;
	const bool futex = t->call == call ? call == arch->call_futex
					   : call == arch->narrow_futex[0] ||
						     call == arch->narrow_futex[1];

	return t->calls && futex ? HELD_FUTEX : HELD_LENDING;
}

/* What a thread sleeps for, where the kernel knows who has it. */
static void look_who_holds(struct thread *t, unsigned int to_come)
{
	const uint64_t *at = outside.options->field;
	uint64_t waiter =
		at[FIELD_BLOCKED] ? outside_field(t->task, FIELD_BLOCKED, 8) : 0;
	uint64_t owner;

	if (outside_in_kernel(waiter)) {
		uint64_t lock = outside_value(waiter + at[FIELD_LOCK], 8);

		put_held(t, lending_kind(t), owner_at(lock + at[FIELD_OWNER]), to_come);
		return;
	}
	if (!t->waits_for)
		return;
	owner = owner_at(t->waits_for);
	/* it has got it, and sleeps for something else */
	if (!owner || owner == t->task)
		t->waits_for = 0;
	else if (t->waits_kind == HELD_WRITTEN &&
		 outside_value(t->waits_for, 8) & LOCK_READ)
		put_held(t, HELD_READ, 0, to_come);
	else
		put_held(t, t->waits_kind, owner, to_come);
}

static void leave(uint64_t before, uint64_t after, unsigned int to_come)
{
	struct outside_task task = outside_read_task(before);
	uint32_t next = outside_tell(after, to_come)->id;
	struct thread *t = outside_tell(before, to_come);
	uint32_t id = t->id;

	code_end_piece(id, to_come);
	if (task.asleep)
		look_who_holds(t, to_come);
	outside_put(OUTSIDE_OUT, to_come, id, !task.asleep,
		    (uint64_t)next << 32 | task.state);
}

static void at_switch(unsigned int to_come)
{
	struct outside_cpu *cpu = outside_cpu();
	uint64_t before = outside_argument(0), after = 0;
	const struct thread *t;

	if (!state_read_task(&after))
		return;
	if (outside_is_new(HOOK_SWITCHED) &&
	    !outside_check(HOOK_SWITCHED, outside_is_task(before)))
		return;
	/* each time, once both are known: it costs nothing */
	if (cpu->current && cpu->current != before)
		outside_check(HOOK_SWITCHED, false);
	if (outside_own(before))
		leave(before, after, to_come);
	cpu->current = after;
	cpu->entered = cpu->awaits = false;
	code_count(outside_own(after));
	if (outside_own(after)) {
		uint32_t id = outside_tell(before, to_come)->id;

		t = outside_tell(after, to_come);
		outside_put(OUTSIDE_IN, to_come, t->id,
			    (uint32_t)outside_field(after, FIELD_PRIO, 4), id);
		cpu->entered = true;
		outside_await();
	}
}

/* --- wake-ups ------------------------------------------------------------------------- */

static void at_wake(unsigned int to_come)
{
	uint64_t task = outside_argument(0), waker = outside_cpu()->current;
	const struct thread *t;
	uint32_t by = 0;

	if (outside_is_new(HOOK_WAKE) &&
	    !outside_check(HOOK_WAKE, outside_is_task(task)))
		return;
	if (!outside_own(task))
		return;
	if (waker)
		by = outside_tell(waker, to_come)->id;
	t = outside_tell(task, to_come);
	outsidetime_at_wake(task, t->id, to_come);
	outside_put(OUTSIDE_WAKE, to_come, t->id, outside_is_in_interrupt(), by);
}

static void at_activate(unsigned int to_come)
{
	uint64_t task = outside_argument(1);

	if (outside_is_new(HOOK_ACTIVATE) &&
	    !outside_check(HOOK_ACTIVATE, outside_is_task(task)))
		return;
	if (outside_own(task))
		outside_put(OUTSIDE_ACTIVATE, to_come, outside_tell(task, to_come)->id,
			    0, 0);
}

/* --- begin and end of threads ---------------------------------------------------------- */

static void at_new(unsigned int to_come)
{
	uint64_t task = outside_argument(0), parent = outside_cpu()->current;
	bool is_own = outside_own(parent);
	uint32_t by, start = is_own ? outside_own(parent)->start : 0;
	struct thread *t;

	if (outside_is_new(HOOK_NEW) && !outside_check(HOOK_NEW, outside_is_task(task)))
		return;
	by = is_own ? outside_tell(parent, to_come)->id : 0;
	t = thread_renew(task);
	t->own = is_own;
	t->parent = by;
	if (!is_own)
		return;
	births_add(t, start);
	t = outside_tell(task, to_come);
	outside_put(OUTSIDE_FORK, to_come, by, t->number, t->id);
}

/* A name ends with a zero, and what follows may be anything. */
static void read_name(uint64_t from, uint64_t name[2])
{
	char text[16];

	name[0] = outside_value(from, 8);
	name[1] = outside_value(from + 8, 8);
	memcpy(text, name, sizeof(text));
	text[15] = '\0';
	for (size_t length = strlen(text); length < sizeof(text); length++)
		text[length] = '\0';
	memcpy(name, text, sizeof(text));
}

/* Also at exec, by which a thread may have become another process' first. */
static void at_rename(unsigned int to_come)
{
	uint64_t task = outside_argument(0), name[2];
	struct thread *t;

	if (outside_is_new(HOOK_RENAME) &&
	    !outside_check(HOOK_RENAME, outside_is_task(task)))
		return;
	t = thread_known(task);
	if (!t || !(t->told || t->own))
		return;
	sites_forget(&t->sites);
	if (t->id != (uint32_t)outside_field(task, FIELD_PID, 4))
		t->told = false;
	t = outside_tell(task, to_come);
	read_name(outside_argument(1), name);
	if (name[0] == t->name[0] && name[1] == t->name[1])
		return;
	memcpy(t->name, name, sizeof(name));
	outside_put_with(OUTSIDE_NAME, to_come, t->id, 0, name[0], name[1]);
}

static void at_exit_of_thread(unsigned int to_come)
{
	struct thread *t = outside_current();

	outside_check(HOOK_EXIT, true);
	if (t)
		outside_put(OUTSIDE_EXIT, to_come, outside_tell(t->task, to_come)->id,
			    0, outside_argument(0));
}

void outside_begin_program(void)
{
	uint64_t current = outside_cpu()->current;
	struct thread *t;

	if (!current)
		return;
	t = thread_at(current);
	t->own = true;
	t->told = false; /* it may have been told as another's */
	births_begin_start(t);
	outside.began_ns = (uint64_t)clock_own_ns(0);
	code_count(true);
}

/* --- locks ---------------------------------------------------------------------------- */

/* Where a thread has found a lock taken, and may wait. */
static void at_lock(enum options_hook hook)
{
	const uint64_t *at = outside.options->field;
	struct thread *t = outside_current();
	uint64_t owner, word;

	if (!t && !outside_is_new(hook))
		return;
	word = outside_argument(0) + at[hook == HOOK_MUTEX     ? FIELD_MUTEX
					: hook == HOOK_LENDING ? FIELD_OWNER
							       : FIELD_RWSEM];
	owner = owner_at(word);
	if (outside_is_new(hook) &&
	    !outside_check(hook, outside_in_kernel(word) &&
					 (!owner || outside_is_task(owner))))
		return;
	if (t) {
		t->waits_for = word;
		t->waits_kind = hook == HOOK_MUTEX     ? HELD_MUTEX
				: hook == HOOK_LENDING ? lending_kind(t)
						       : HELD_WRITTEN;
	}
}

void outside_at_hook(unsigned int hook, unsigned int instructions)
{
	if (outside.wrong)
		return;
	if (hook > OPTIONS_HOOKS) {
		outsidecalls_at_use(hook - 1 - OPTIONS_HOOKS, instructions);
		return;
	}
	switch ((enum options_hook)(hook - 1)) {
	case HOOK_WAKE:
		at_wake(instructions);
		break;
	case HOOK_ACTIVATE:
		at_activate(instructions);
		break;
	case HOOK_SWITCHED:
		at_switch(instructions);
		break;
	case HOOK_SLEEPER:
	case HOOK_TIMERFD:
	case HOOK_POSIX_TIMER:
	case HOOK_ITIMER:
		outsidetime_at_timer((enum options_hook)(hook - 1), instructions);
		break;
	case HOOK_NEW:
		at_new(instructions);
		break;
	case HOOK_RENAME:
		at_rename(instructions);
		break;
	case HOOK_EXIT:
		at_exit_of_thread(instructions);
		break;
	case HOOK_CALL:
		outsidecalls_at_call(instructions);
		break;
	case HOOK_FAULT:
		outsidecalls_at_fault(instructions);
		break;
	case HOOK_MUTEX:
	case HOOK_READ:
	case HOOK_WRITE:
	case HOOK_LENDING:
		at_lock((enum options_hook)(hook - 1));
		break;
	case OPTIONS_HOOKS:
		break;
	}
}

/* --- in programs ------------------------------------------------------------------------ */

void outside_count(unsigned int instructions)
{
	outside_cpu()->executed += instructions;
}

/* include/linux/sched/prio.h */
#define MAX_RT_PRIO 100

static bool is_realtime(const struct thread *t)
{
	return (int32_t)outside_field(t->task, FIELD_PRIO, 4) < MAX_RT_PRIO;
}

void outside_at_possible_birth(unsigned int instructions)
{
	struct thread *t = outside_cpu()->awaits ? outside_current() : NULL;
	uint64_t now_ns = (uint64_t)clock_own_ns(instructions);
	uint64_t ns = t ? births_hold_ns(t, is_realtime(t), now_ns) : 0;

	if (!ns)
		return;
	outside_put(OUTSIDE_HOLD, instructions, t->id, t->number, ns);
	clock_hold(instructions, ns);
}

void outside_at_program(uint64_t address, unsigned int instructions)
{
	struct outside_cpu *cpu = outside_cpu();
	struct thread *t = cpu->awaits ? outside_current() : NULL;

	if (!t)
		return;
	if (cpu->entered)
		outside_put_with(OUTSIDE_FIRST, instructions, t->id, 0, address,
				 cpu->executed - instructions);
	if (t->calls)
		outsidecalls_at_return(t, address, instructions,
				       cpu->executed - instructions);
	if (t->uses)
		outsidecalls_at_done(t, address, instructions,
				     cpu->executed - instructions);
	cpu->entered = false;
	cpu->awaits = t->uses;
	if (cpu->awaits)
		return;
	outside_awaits = false;
	for (unsigned int i = 0; i < cpus.count; i++)
		outside_awaits |= outside.cpu[i].awaits;
}

/* --- the end --------------------------------------------------------------------------- */

/* Without a hook its records are missing: unknown, and not none. */
static uint32_t possible_kinds(void)
{
	static const enum outside_kind of_hook[OPTIONS_HOOKS] = {
		[HOOK_WAKE] = OUTSIDE_WAKE,    [HOOK_ACTIVATE] = OUTSIDE_ACTIVATE,
		[HOOK_SWITCHED] = OUTSIDE_OUT, [HOOK_SLEEPER] = OUTSIDE_RELEASE,
		[HOOK_NEW] = OUTSIDE_FORK,     [HOOK_RENAME] = OUTSIDE_NAME,
		[HOOK_EXIT] = OUTSIDE_EXIT,    [HOOK_CALL] = OUTSIDE_CALL,
		[HOOK_FAULT] = OUTSIDE_FAULT,  [HOOK_MUTEX] = OUTSIDE_HELD,
		[HOOK_LENDING] = OUTSIDE_HELD,
	};
	const struct options *o = outside.options;
	uint32_t kinds = 1u << OUTSIDE_THREAD | 1u << OUTSIDE_NAME | 1u << OUTSIDE_IN |
			 1u << OUTSIDE_FIRST | 1u << OUTSIDE_LOST;

	for (unsigned int i = 0; i < OPTIONS_HOOKS; i++)
		if (o->hook[i] && of_hook[i])
			kinds |= 1u << of_hook[i];
	if (!o->time[TIME_KEEPER])
		kinds &= ~(1u << OUTSIDE_RELEASE);
	if (o->field[FIELD_BLOCKED])
		kinds |= 1u << OUTSIDE_HELD;
	if (o->hook[HOOK_CALL])
		kinds |= 1u << OUTSIDE_RETURN | 1u << OUTSIDE_ARGUMENTS |
			 1u << OUTSIDE_ASKED;
	if (o->uses)
		kinds |= 1u << OUTSIDE_USED | 1u << OUTSIDE_DONE;
	if (o->phases)
		kinds |= 1u << OUTSIDE_HOLD;
	if (o->stacks)
		kinds |= 1u << OUTSIDE_STACK;
	return kinds;
}

/* Whatever a machine does, it comes by these before it ends. */
static const char *never_reached(void)
{
	static const enum options_hook always[] = { HOOK_WAKE,     HOOK_ACTIVATE,
						    HOOK_SWITCHED, HOOK_NEW,
						    HOOK_RENAME,   HOOK_EXIT,
						    HOOK_CALL,     HOOK_FAULT };
	static const char *const names[OPTIONS_HOOKS] = OPTIONS_HOOK_NAMES;

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (outside.options->hook[always[i]] && outside_is_new(always[i]))
			return names[always[i]];
	return NULL;
}

const char *outside_end(void)
{
	static char why[128];
	const char *missing;

	if (!outsidefile_end(cpus.count, possible_kinds()) ||
	    (outside.options->code && !code_end()))
		return "cannot be written";
	if (outside.wrong) {
		snprintf(why, sizeof(why),
			 "the first argument of %s is not what it should be",
			 outside.wrong);
		return why;
	}
	missing = never_reached();
	if (!missing)
		return NULL;
	snprintf(why, sizeof(why), "the kernel never came by %s", missing);
	return why;
}
