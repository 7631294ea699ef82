/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "outsidestate.h"

#include <stddef.h>
#include <string.h>

#include "registers.h"
#include "state.h"

/* include/linux/preempt.h: hard interrupts and NMIs, and bit 0 of softirqs: one runs */
#define IN_INTERRUPT UINT64_C(0x00ff0100)

#define MAX_ID (1 << 22) /* PID_MAX_LIMIT, include/linux/threads.h */

struct outside outside;
bool outside_awaits;

struct outside_cpu *outside_cpu(void)
{
	return &outside.cpu[cpus_index(cpus.now)];
}

/* --- what a hook is given ------------------------------------------------------------- */

uint64_t outside_argument(unsigned int number)
{
	uint64_t value = 0;

	registers_read(outside.argument[number], &value);
	return value;
}

uint64_t outside_stack(void)
{
	uint64_t value = 0;

	registers_read(outside.stack, &value);
	return value;
}

uint64_t outside_value(uint64_t address, unsigned int bytes)
{
	uint64_t value;

	return registers_read_memory(address, bytes, &value) ? value : 0;
}

uint64_t outside_field(uint64_t task, enum options_field which, unsigned int bytes)
{
	return outside_value(task + outside.options->field[which], bytes);
}

/* The scheduler's members lie near the beginning of a task: one reading for all. */
struct outside_task outside_read_task(uint64_t task)
{
	const uint64_t *at = outside.options->field;
	unsigned char bytes[512] = { 0 };
	struct outside_task read = { 0 };
	uint32_t on_rq;

	if (at[FIELD_STATE] + 4 > sizeof(bytes) ||
	    at[FIELD_ON_RQ] + 4 > sizeof(bytes) || at[FIELD_DELAYED] >= sizeof(bytes) ||
	    !registers_copy_memory(task, sizeof(bytes), bytes)) {
		outside_check(HOOK_SWITCHED, false);
		return read;
	}
	memcpy(&read.state, bytes + at[FIELD_STATE], sizeof(read.state));
	memcpy(&on_rq, bytes + at[FIELD_ON_RQ], sizeof(on_rq));
	read.asleep = !on_rq || (at[FIELD_DELAYED] && bytes[at[FIELD_DELAYED]] & 1);
	return read;
}

bool outside_in_kernel(uint64_t address)
{
	return address >> 63;
}

bool outside_is_task(uint64_t task)
{
	char name[8];
	uint64_t word;

	if (!outside_in_kernel(task) ||
	    !registers_read_memory(task + outside.options->field[FIELD_COMM], 8,
				   &word) ||
	    outside_field(task, FIELD_PID, 4) > MAX_ID ||
	    outside_field(task, FIELD_TGID, 4) > MAX_ID)
		return false;
	memcpy(name, &word, sizeof(name));
	for (unsigned int i = 0; i < sizeof(name) && name[i]; i++)
		if (name[i] < ' ' || name[i] > '~')
			return false;
	return name[0];
}

bool outside_is_in_interrupt(void)
{
	uint64_t count;

	return state_read_count(&count) && count & IN_INTERRUPT;
}

bool outside_is_new(enum options_hook hook)
{
	return !(outside.seen & 1u << hook);
}

bool outside_check(enum options_hook hook, bool fits)
{
	static const char *const names[OPTIONS_HOOKS] = OPTIONS_HOOK_NAMES;

	outside.seen |= 1u << hook;
	if (!fits && !outside.wrong)
		outside.wrong = names[hook];
	return fits;
}

/* --- threads and records -------------------------------------------------------------- */

struct thread *outside_own(uint64_t task)
{
	struct thread *t = thread_known(task);

	return t && t->own ? t : NULL;
}

struct thread *outside_current(void)
{
	uint64_t task = outside_cpu()->current;

	return task ? outside_own(task) : NULL;
}

struct thread *outside_tell(uint64_t task, unsigned int to_come)
{
	struct thread *t = thread_at(task);

	if (t->told)
		return t;
	t->told = true;
	t->id = (uint32_t)outside_field(task, FIELD_PID, 4);
	t->process = (uint32_t)outside_field(task, FIELD_TGID, 4);
	t->name[0] = outside_field(task, FIELD_COMM, 8);
	t->name[1] = outside_value(task + outside.options->field[FIELD_COMM] + 8, 8);
	outside_put_with(OUTSIDE_THREAD, to_come, t->id, t->process, t->parent, t->own);
	outside_put_with(OUTSIDE_NAME, to_come, t->id, 0, t->name[0], t->name[1]);
	return t;
}

void outside_put_with(enum outside_kind kind, unsigned int to_come, uint32_t thread,
		      uint32_t detail, uint64_t value, uint64_t user)
{
	const struct outside_record record = {
		.thread = thread, .detail = detail, .value = value, .user = user
	};

	outsidefile_put(kind, to_come, &record);
}

void outside_put(enum outside_kind kind, unsigned int to_come, uint32_t thread,
		 uint32_t detail, uint64_t value)
{
	outside_put_with(kind, to_come, thread, detail, value, outside_cpu()->executed);
}

void outside_await(void)
{
	outside_cpu()->awaits = true;
	outside_awaits = true;
}
