/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "outsidecalls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "outsidestate.h"
#include "registers.h"

/* include/linux/mm_types.h */
#define FAULT_OF_PROGRAM  0x40
#define FAULT_REMOTE      0x80
#define GOES_ON_ELSEWHERE (1u << 31)

/* --- stacks --------------------------------------------------------------------------- */

/* Why a stack is taken, for the count of each reason. */
enum {
	FOR_FAULT = THREAD_CALLS,
	FOR_USE,
	REASONS = FOR_USE + OPTIONS_USES,
};

#define PAYLOAD_RECORDS                                                                \
	((ARCH_UNWOUND * 8 + OPTIONS_STACK) / sizeof(struct outside_record) + 2)

static union {
	struct outside_record record[PAYLOAD_RECORDS];
	uint64_t word[PAYLOAD_RECORDS * sizeof(struct outside_record) / 8];
} payload;

static bool is_wanted(struct thread *t, unsigned int reason, unsigned int to_come)
{
	const struct options *o = outside.options;
	uint64_t now_ns = (uint64_t)clock_own_ns(to_come);

	if (!o->stacks || now_ns < o->stacked.first || now_ns > o->stacked.last)
		return false;
	if (!t->stacks)
		t->stacks = calloc(REASONS, 1);
	return t->stacks && t->stacks[reason] < o->stacks;
}

/* From the stack pointer on, as far as it can be read. */
static unsigned int copy_stack(uint64_t from, unsigned int words)
{
	unsigned int copied = 0;
	uint64_t most = outside.options->stack / 8;

	while (copied < most && !outside_in_kernel(from) &&
	       registers_read_memory(from + 8 * copied, 8,
				     &payload.word[words + copied]))
		copied++;
	return copied;
}

/* `registers`: where the kernel keeps those of the program; 0: the CPU has them. */
static void put_stack(struct thread *t, unsigned int reason, uint64_t registers,
		      unsigned int to_come)
{
	const struct arch *arch = outside.arch;
	unsigned int words = 0, copied, records;
	uint64_t at = 0, stack = 0;

	memset(&payload, 0, sizeof(payload));
	for (; words < ARCH_UNWOUND && arch->unwound[words].name; words++) {
		uint64_t *value = &payload.word[words];

		if (registers)
			*value = outside_value(registers + arch->unwound[words].offset,
					       8);
		else
			registers_read(outside.unwound[words], value);
		if (arch->unwound[words].offset == arch->call_sp)
			stack = *value;
		if (arch->unwound[words].offset == arch->call_pc)
			at = *value;
	}
	copied = copy_stack(stack, words);
	records = (unsigned int)(((words + copied) * 8 + sizeof(struct outside_record) -
				  1) /
				 sizeof(struct outside_record));
	if (!outsidefile_has_room(1 + records))
		return;
	t->stacks[reason]++;
	outside_put_with(OUTSIDE_STACK, to_come, t->id, records, at,
			 (uint64_t)copied * 8 << 32 | words);
	outsidefile_put_payload(payload.record, records);
}

/* --- system calls --------------------------------------------------------------------- */

/* What the kernel has kept of the program's registers. */
struct call {
	uint64_t word[ARCH_CALL_BYTES / 8];
};

static uint64_t in_call(const struct call *call, unsigned int offset)
{
	return call->word[offset / 8];
}

static bool read_call(uint64_t registers, struct call *out)
{
	return outside_in_kernel(registers) &&
	       registers_copy_memory(registers, outside.arch->call_bytes, out);
}

static bool is_call(const struct call *call, uint32_t number)
{
	const struct arch *arch = outside.arch;
	uint64_t proof = in_call(call, arch->call_proof);

	return arch->call_proves ? proof == arch->call_proves
				 : (uint32_t)proof == number;
}

static void put_call(struct thread *t, const struct call *call, unsigned int to_come)
{
	const unsigned int *at = outside.arch->call_argument;
	uint64_t asked = in_call(call, at[2]);

	outside_put(OUTSIDE_CALL, to_come, t->id, t->call, in_call(call, at[0]));
	outside_put_with(OUTSIDE_ARGUMENTS, to_come, t->id, t->call,
			 in_call(call, at[1]), asked);
	if (t->call == outside.arch->call_sleep) /* struct __kernel_timespec */
		outside_put(OUTSIDE_ASKED, to_come, t->id,
			    (uint32_t)in_call(call, at[1]),
			    outside_value(asked, 8) * 1000000000 +
				    outside_value(asked + 8, 8));
}

void outsidecalls_at_call(unsigned int to_come)
{
	const struct arch *arch = outside.arch;
	struct thread *t = outside_current();
	uint64_t registers;
	struct call call;
	uint32_t number;

	if (!t && !outside_is_new(HOOK_CALL))
		return;
	registers = outside_argument(0);
	if (!read_call(registers, &call)) {
		outside_check(HOOK_CALL, false);
		return;
	}
	number = (uint32_t)(arch->call_number ? in_call(&call, arch->call_number)
					      : outside_argument(1));
	if (outside_is_new(HOOK_CALL) &&
	    !outside_check(HOOK_CALL, is_call(&call, number)))
		return;
	if (!t)
		return;
	t = outside_tell(t->task, to_come);
	t->calls = true;
	t->call = number;
	t->registers = registers;
	t->returns_to = in_call(&call, arch->call_pc) + arch->call_ends;
	t->waits_for = 0;
	put_call(t, &call, to_come);
	if (number >= THREAD_CALLS)
		number = THREAD_CALLS - 1;
	if (is_wanted(t, number, to_come))
		put_stack(t, number, registers, to_come);
	outside_await();
}

void outsidecalls_at_return(struct thread *t, uint64_t address, unsigned int to_come,
			    uint64_t executed)
{
	bool elsewhere = address != t->returns_to;
	uint64_t result = 0;

	registers_read(outside.result, &result);
	outside_put_with(OUTSIDE_RETURN, to_come, t->id,
			 t->call | (elsewhere ? GOES_ON_ELSEWHERE : 0), result,
			 executed);
	t->calls = false;
	t->registers = 0;
	t->waits_for = 0;
}

/* --- page faults ---------------------------------------------------------------------- */

static bool is_fault(uint64_t area, uint64_t address)
{
	const uint64_t *field = outside.options->field;

	return outside_in_kernel(area) &&
	       address >= outside_value(area + field[FIELD_AREA], 8) &&
	       address < outside_value(area + field[FIELD_AREA_END], 8);
}

void outsidecalls_at_fault(unsigned int to_come)
{
	struct thread *t = outside_current();
	uint64_t address, flags, executed = outside_cpu()->executed;

	if (!t && !outside_is_new(HOOK_FAULT))
		return;
	address = outside_argument(1);
	flags = outside_argument(2);
	if (outside_is_new(HOOK_FAULT) &&
	    !outside_check(HOOK_FAULT, is_fault(outside_argument(0), address)))
		return;
	/* the kernel tries the same again after it has waited */
	if (!t || flags & FAULT_REMOTE ||
	    (t->fault == address && t->fault_user == executed))
		return;
	t = outside_tell(t->task, to_come);
	t->fault = address;
	t->fault_user = executed;
	outside_put(OUTSIDE_FAULT, to_come, t->id, (uint32_t)flags, address);
	if (is_wanted(t, FOR_FAULT, to_come)) {
		uint64_t registers =
			flags & FAULT_OF_PROGRAM ? outside_argument(3) : t->registers;

		if (registers)
			put_stack(t, FOR_FAULT, registers, to_come);
	}
}

/* --- functions of the program ---------------------------------------------------------- */

void outsidecalls_at_use(unsigned int use, unsigned int to_come)
{
	const struct arch *arch = outside.arch;
	struct thread *t = outside_current();
	uint64_t to = 0;

	if (!t)
		return;
	if (arch->link)
		registers_read(outside.unwound[arch->link], &to);
	else
		registers_read_memory(outside_stack(), 8, &to);
	t = outside_tell(t->task, to_come);
	outside_put_with(OUTSIDE_USED, to_come, t->id, use, to,
			 outside_cpu()->executed - to_come);
	if (is_wanted(t, FOR_USE + use, to_come))
		put_stack(t, FOR_USE + use, 0, to_come);
}
