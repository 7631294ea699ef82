/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "outside.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "record.h"
#include "registers.h"
#include "state.h"
#include "threads.h"

#define PROGRAM_VERSION 1
#define BUFFER_BYTES    (1 << 20)

enum program_kind {
	PROGRAM_THREAD = 1,
	PROGRAM_NAME = 2,
	PROGRAM_RELEASE = 3,
	PROGRAM_WAKE = 4,
	PROGRAM_IN = 6,
	PROGRAM_OUT = 7,
	PROGRAM_FIRST = 8,
	PROGRAM_CALL = 9,
	PROGRAM_RETURN = 10,
	PROGRAM_FAULT = 11,
	PROGRAM_EXIT = 15,
	PROGRAM_FORK = 16,
	PROGRAM_LOST = 17,
	PROGRAM_ARGUMENTS = 18,
	PROGRAM_ASKED = 19,
};

struct program_header {
	char magic[8]; /* "RTSCPROG" */
	uint32_t version;
	uint32_t cpus;
	char arch[16];
	uint32_t shift;
	uint32_t kinds; /* bit by bit, those that can be there */
	uint64_t quantum;
	uint64_t zero[2];
};

struct program_record {
	uint64_t stamp; /* as in record.h */
	uint32_t thread;
	uint32_t detail;
	uint64_t value;
	uint64_t user;
};

bool outside_awaits;

static struct {
	const struct options *options;
	const struct arch *arch;
	FILE *file;
	char *buffer;
	struct qemu_plugin_register *argument[3], *result;
	uint64_t written, lost;
	const char *wrong; /* a hook whose argument was none */
	unsigned int seen; /* bits of hooks whose argument was checked */
	struct outside_cpu {
		uint64_t executed; /* instructions of programs */
		uint64_t task;   /* of the program, that this CPU is in; 0: of others */
		bool entered;    /* it was switched to and has not executed its own */
		bool begins;     /* its next system call is the program's */
		int64_t due_ns;  /* of the timer whose callback runs here, */
		int64_t expires; /* the same by CLOCK_MONOTONIC */
		uint32_t due;    /* how; 0: none runs */
	} cpu[CPUS_MAX];
} outside;

/* Without a hook its records are missing: unknown, and not none. */
static uint32_t kinds_of(const struct options *o)
{
	uint32_t kinds = 1u << PROGRAM_THREAD | 1u << PROGRAM_NAME | 1u << PROGRAM_IN |
			 1u << PROGRAM_OUT | 1u << PROGRAM_FIRST | 1u << PROGRAM_LOST;

	if (o->hook[HOOK_WAKE])
		kinds |= 1u << PROGRAM_WAKE;
	if (o->hook[HOOK_SLEEPER] && o->hook[HOOK_WAKE] && o->time[TIME_KEEPER])
		kinds |= 1u << PROGRAM_RELEASE;
	if (o->hook[HOOK_NEW])
		kinds |= 1u << PROGRAM_FORK;
	if (o->hook[HOOK_EXIT])
		kinds |= 1u << PROGRAM_EXIT;
	if (o->hook[HOOK_CALL])
		kinds |= 1u << PROGRAM_CALL | 1u << PROGRAM_RETURN |
			 1u << PROGRAM_ARGUMENTS | 1u << PROGRAM_ASKED;
	if (o->hook[HOOK_FAULT])
		kinds |= 1u << PROGRAM_FAULT;
	return kinds;
}

int outside_init(const struct options *options, const struct arch *arch)
{
	struct program_header header = { .magic = "RTSCPROG",
					 .version = PROGRAM_VERSION,
					 .shift = (uint32_t)options->shift,
					 .kinds = kinds_of(options),
					 .quantum = options->quantum };

	outside.options = options;
	outside.arch = arch;
	outside.file = fopen(options->program, "wb");
	if (!outside.file)
		return -errno;
	outside.buffer = malloc(BUFFER_BYTES);
	if (outside.buffer)
		setvbuf(outside.file, outside.buffer, _IOFBF, BUFFER_BYTES);
	strncpy(header.arch, arch->name, sizeof(header.arch) - 1);
	/* the CPUs are known at the end: see outside_end() */
	return fwrite(&header, sizeof(header), 1, outside.file) == 1 ? 0 : -EIO;
}

const char *outside_registers(void)
{
	for (unsigned int i = 0; i < 3; i++) {
		outside.argument[i] = registers_find(outside.arch->argument[i]);
		if (!outside.argument[i])
			return outside.arch->argument[i];
	}
	outside.result = registers_find(outside.arch->result);
	return outside.result ? NULL : outside.arch->result;
}

unsigned int outside_hook_at(uint64_t address)
{
	for (unsigned int i = 0; i < OPTIONS_HOOKS; i++)
		if (address == outside.options->hook[i])
			return i;
	return OPTIONS_HOOKS;
}

static uint64_t value_at(uint64_t address, unsigned int size)
{
	uint64_t value;

	return registers_read_memory(address, size, &value) ? value : 0;
}

static uint64_t argument(unsigned int number)
{
	uint64_t value = 0;

	registers_read(outside.argument[number], &value);
	return value;
}

static struct outside_cpu *this_cpu(void)
{
	return &outside.cpu[cpus_index(cpus.now)];
}

/* --- records ------------------------------------------------------------------------ */

static void put(enum program_kind kind, unsigned int to_come, uint32_t thread,
		uint32_t detail, uint64_t value, uint64_t user)
{
	unsigned int cpu = cpus_index(cpus.now);
	struct record stamp =
		record_make(RECORD_BLOCK, cpu, (uint64_t)clock_own_ns(to_come), 0);
	struct program_record record = {
		.stamp = (stamp.stamp & (UINT64_MAX >> 8)) | (uint64_t)kind << 56,
		.thread = thread,
		.detail = detail,
		.value = value,
		.user = user,
	};

	if (outside.written == outside.options->most) {
		outside.lost++;
		return;
	}
	outside.written++;
	fwrite(&record, sizeof(record), 1, outside.file);
}

static void put_event(enum program_kind kind, unsigned int to_come, uint32_t thread,
		      uint32_t detail, uint64_t value)
{
	put(kind, to_come, thread, detail, value, this_cpu()->executed);
}

static uint64_t field(uint64_t task, enum options_field which, unsigned int size)
{
	return value_at(task + outside.options->field[which], size);
}

/* Who it is; told when it is first mentioned, and when its name is another. */
static struct thread *tell(uint64_t task, unsigned int to_come)
{
	struct thread *t = thread_at(task);
	uint64_t name[2] = { field(task, FIELD_COMM, 8),
			     value_at(task + outside.options->field[FIELD_COMM] + 8,
				      8) };
	uint32_t id = (uint32_t)field(task, FIELD_PID, 4);
	bool is_new = !t->told || t->id != id;

	if (is_new) {
		t->told = true;
		t->id = id;
		t->process = (uint32_t)field(task, FIELD_TGID, 4);
		put(PROGRAM_THREAD, to_come, t->id, t->process, t->parent, t->own);
	}
	if (is_new || name[0] != t->name[0] || name[1] != t->name[1]) {
		memcpy(t->name, name, sizeof(name));
		put(PROGRAM_NAME, to_come, t->id, 0, name[0], name[1]);
	}
	return t;
}

/* --- what a hook is given ------------------------------------------------------------- */

static bool is_task(uint64_t task)
{
	uint64_t word;
	char name[8];

	if (!(task >> 63) ||
	    !registers_read_memory(task + outside.options->field[FIELD_COMM], 8, &word))
		return false;
	memcpy(name, &word, sizeof(name));
	for (unsigned int i = 0; i < sizeof(name) && name[i]; i++)
		if (name[i] < ' ' || name[i] > '~')
			return false;
	return name[0];
}

/* At its first hit the argument of a hook must be what the kernel's source says. */
static bool is_right(enum options_hook hook, bool fits)
{
	static const char *const names[OPTIONS_HOOKS] = OPTIONS_HOOK_NAMES;

	if (outside.seen & 1u << hook)
		return true;
	outside.seen |= 1u << hook;
	if (!fits && !outside.wrong)
		outside.wrong = names[hook];
	return fits;
}

static struct thread *own(uint64_t task)
{
	struct thread *t = thread_known(task);

	return t && t->own ? t : NULL;
}

/* --- timers --------------------------------------------------------------------------- */

#define UNKNOWN_NS INT64_MIN

/* When a clock of the kernel reaches what a timer waits for, in virtual ns: the inverse of
 * timekeeping_get_ns() of kernel/time/timekeeping.c. Another CPU may be writing there. */
static int64_t release_of(uint64_t timer, int64_t *monotonic)
{
	const uint64_t *at = outside.options->time;
	uint64_t base = value_at(timer + at[TIME_BASE], 8), sequence, mult, shift;
	int64_t expires = (int64_t)value_at(timer + at[TIME_EXPIRES], 8);
	__int128 cycles;

	expires -= (int64_t)value_at(base + at[TIME_OFFSET], 8);
	*monotonic = expires;
	if (!at[TIME_KEEPER])
		return UNKNOWN_NS;
	sequence = value_at(at[TIME_CORE], 4);
	mult = value_at(at[TIME_KEEPER] + at[TIME_MULT], 4);
	shift = value_at(at[TIME_KEEPER] + at[TIME_SHIFT], 4);
	if (sequence & 1 || !mult || shift > 32)
		return UNKNOWN_NS;
	cycles = (__int128)(expires -
			    (int64_t)value_at(at[TIME_KEEPER] + at[TIME_NS], 8))
		 << shift;
	cycles -= (__int128)value_at(at[TIME_KEEPER] + at[TIME_XTIME], 8);
	cycles /= (__int128)mult;
	cycles += (__int128)value_at(at[TIME_KEEPER] + at[TIME_LAST], 8);
	return (int64_t)(cycles * 1000000000 / (__int128)at[TIME_HZ]);
}

static void at_timer(enum options_hook hook)
{
	struct outside_cpu *cpu = this_cpu();
	uint64_t timer = argument(0);

	if (!is_right(hook, timer >> 63))
		return;
	cpu->due = hook == HOOK_SLEEPER ? 1 : hook == HOOK_TIMERFD ? 2 : 3;
	cpu->due_ns = release_of(timer, &cpu->expires);
}

/* --- switches, wake-ups --------------------------------------------------------------- */

static void at_switch(unsigned int to_come)
{
	struct outside_cpu *cpu = this_cpu();
	uint64_t before = argument(0), after = 0;
	const struct thread *t;
	uint32_t next = 0;

	if (!is_right(HOOK_SWITCHED, is_task(before)) || !state_read_task(&after))
		return;
	cpu->task = 0;
	cpu->due = 0;
	if (own(before)) {
		uint64_t asleep = !field(before, FIELD_ON_RQ, 4);
		uint64_t state = field(before, FIELD_STATE, 4);

		next = tell(after, to_come)->id;
		t = tell(before, to_come);
		put_event(PROGRAM_OUT, to_come, t->id, !asleep,
			  (uint64_t)next << 32 | (uint32_t)state);
	}
	if (own(after)) {
		t = tell(after, to_come);
		put_event(PROGRAM_IN, to_come, t->id,
			  (uint32_t)field(after, FIELD_PRIO, 4), 0);
		cpu->task = after;
		cpu->entered = true;
		outside_awaits = true;
	}
}

static void at_wake(unsigned int to_come)
{
	struct outside_cpu *cpu = this_cpu();
	uint64_t task = argument(0), waker = 0;
	const struct thread *t;
	uint32_t by = 0;

	if (!is_right(HOOK_WAKE, is_task(task)) || !own(task))
		return;
	if (state_read_task(&waker) && waker != task)
		by = tell(waker, to_come)->id;
	t = tell(task, to_come);
	if (cpu->due)
		put(PROGRAM_RELEASE, to_come, t->id, cpu->due, (uint64_t)cpu->due_ns,
		    (uint64_t)cpu->expires);
	put_event(PROGRAM_WAKE, to_come, t->id, 0, by);
}

/* --- begin and end of threads ---------------------------------------------------------- */

static void at_new(unsigned int to_come)
{
	uint64_t task = argument(0), parent = 0;
	struct thread *t;
	uint32_t by;
	bool is_own;

	if (!is_right(HOOK_NEW, is_task(task)) || !state_read_task(&parent))
		return;
	is_own = own(parent);
	by = is_own ? tell(parent, to_come)->id : 0;
	t = thread_renew(task);
	t->own = is_own;
	t->parent = by;
	if (!is_own)
		return;
	t = tell(task, to_come);
	put_event(PROGRAM_FORK, to_come, by, 0, t->id);
}

static void at_exit_of_thread(unsigned int to_come)
{
	uint64_t task;

	if (state_read_task(&task) && own(task))
		put_event(PROGRAM_EXIT, to_come, tell(task, to_come)->id, 0,
			  argument(0));
}

/* --- calls of the kernel, page faults --------------------------------------------------- */

/* struct pt_regs of arch/<arch>/include/asm/ptrace.h */
static uint64_t of_call(uint64_t registers, unsigned int number)
{
	return value_at(registers + outside.arch->call_argument[number], 8);
}

static void at_call(unsigned int to_come)
{
	struct outside_cpu *cpu = this_cpu();
	uint64_t registers = argument(0), task;
	const struct arch *arch = outside.arch;
	struct thread *t;

	if (!is_right(HOOK_CALL, registers >> 63) || !state_read_task(&task))
		return;
	if (cpu->begins) {
		cpu->begins = false;
		thread_at(task)->own = true;
		cpu->task = task;
	}
	if (!own(task))
		return;
	t = tell(task, to_come);
	t->calls = true;
	t->call = (uint32_t)(arch->call_number
				     ? value_at(registers + arch->call_number, 8)
				     : argument(1));
	put_event(PROGRAM_CALL, to_come, t->id, t->call, of_call(registers, 0));
	put(PROGRAM_ARGUMENTS, to_come, t->id, t->call, of_call(registers, 1),
	    of_call(registers, 2));
	if (t->call == arch->call_sleep) {
		uint64_t asked = of_call(registers, 2); /* struct __kernel_timespec */

		put_event(PROGRAM_ASKED, to_come, t->id,
			  (uint32_t)of_call(registers, 1),
			  value_at(asked, 8) * 1000000000 + value_at(asked + 8, 8));
	}
	cpu->task = task;
	outside_awaits = true;
}

static void at_fault(unsigned int to_come)
{
	uint64_t task;

	if (state_read_task(&task) && own(task))
		put_event(PROGRAM_FAULT, to_come, tell(task, to_come)->id,
			  (uint32_t)argument(2), argument(1));
}

void outside_at_hook(unsigned int hook, unsigned int instructions)
{
	switch ((enum options_hook)hook) {
	case HOOK_WAKE:
		at_wake(instructions);
		break;
	case HOOK_SWITCHED:
		at_switch(instructions);
		break;
	case HOOK_SLEEPER:
	case HOOK_TIMERFD:
	case HOOK_POSIX_TIMER:
		at_timer((enum options_hook)hook);
		break;
	case HOOK_NEW:
		at_new(instructions);
		break;
	case HOOK_EXIT:
		at_exit_of_thread(instructions);
		break;
	case HOOK_CALL:
		at_call(instructions);
		break;
	case HOOK_FAULT:
		at_fault(instructions);
		break;
	case OPTIONS_HOOKS:
		break;
	}
}

/* --- in programs ------------------------------------------------------------------------ */

void outside_begin_program(void)
{
	this_cpu()->begins = true;
}

void outside_count(unsigned int instructions)
{
	this_cpu()->executed += instructions;
}

void outside_at_program(uint64_t address, unsigned int instructions)
{
	struct outside_cpu *cpu = this_cpu();
	struct thread *t = cpu->task ? own(cpu->task) : NULL;
	uint64_t result = 0;

	if (!t)
		return;
	if (cpu->entered)
		put(PROGRAM_FIRST, instructions, t->id, 0, address,
		    cpu->executed - instructions);
	if (t->calls) {
		registers_read(outside.result, &result);
		put(PROGRAM_RETURN, instructions, t->id, t->call, result,
		    cpu->executed - instructions);
	}
	cpu->entered = t->calls = false;
	cpu->task = 0;
	outside_awaits = false;
	for (unsigned int i = 0; i < cpus.count; i++)
		outside_awaits |= outside.cpu[i].task != 0;
}

const char *outside_end(void)
{
	static char why[96];
	uint32_t count = cpus.count;

	if (outside.lost) {
		struct program_record record = { .stamp = (uint64_t)PROGRAM_LOST << 56,
						 .value = outside.lost };

		fwrite(&record, sizeof(record), 1, outside.file);
	}
	if (fseek(outside.file, offsetof(struct program_header, cpus), SEEK_SET) ||
	    fwrite(&count, sizeof(count), 1, outside.file) != 1 || fclose(outside.file))
		return "cannot be written";
	if (!outside.wrong)
		return NULL;
	snprintf(why, sizeof(why),
		 "the kernel's %s has another argument than it should", outside.wrong);
	return why;
}
