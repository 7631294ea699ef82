/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "outsidecalls.h"

#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "code.h"
#include "outsidestate.h"
#include "registers.h"
#include "sites.h"
#include "usermemory.h"
#include "uses.h"

/* include/linux/mm_types.h */
#define FAULT_OF_PROGRAM  0x40
#define FAULT_REMOTE      0x80
#define GOES_ON_ELSEWHERE (1u << 31)
#define DETAIL_MASK       0xffffu
#define PLACE_SHIFT       16

/* --- stacks --------------------------------------------------------------------------- */

/* What a place is of; with the number of the call or of the function below it. */
enum { OF_CALL = 1, OF_FAULT, OF_USE };

#define KEY_WORDS 64 /* of the stack, that tell a place */

#define PAYLOAD_RECORDS                                                                \
	((ARCH_UNWOUND * 8 + OPTIONS_STACK) / sizeof(struct outside_record) + 2)

static union {
	struct outside_record record[PAYLOAD_RECORDS];
	uint64_t word[PAYLOAD_RECORDS * sizeof(struct outside_record) / 8];
} payload;

/* A place in a program, and its stack if that was not taken before. */
struct place_in_program {
	uint32_t number; /* 0: not known */
	bool is_new;
	uint64_t registers; /* where the kernel keeps them; 0: the CPU has them */
};

static bool is_wanted(unsigned int to_come)
{
	const struct options *o = outside.options;
	uint64_t age_ns = (uint64_t)clock_own_ns(to_come) - outside.began_ns;

	return o->stacks && age_ns >= o->stacked.first && age_ns <= o->stacked.last;
}

static uint64_t unwound(const struct place_in_program *place, unsigned int which)
{
	uint64_t value = 0;

	if (place->registers)
		return outside_value(
			place->registers + outside.arch->unwound[which].offset, 8);
	registers_read(outside.unwound[which], &value);
	return value;
}

/* Their numbers in the order of unwinding. */
static unsigned int number_of(unsigned int offset)
{
	const struct arch *arch = outside.arch;
	unsigned int which = 0;

	while (which + 1 < ARCH_UNWOUND && arch->unwound[which].offset != offset)
		which++;
	return which;
}

/* From the stack pointer on, as far as it can be read. */
static unsigned int copy_stack(uint64_t from, unsigned int bytes, void *to)
{
	unsigned int copied = 0;

	while (copied < bytes && !outside_in_kernel(from)) {
		unsigned int part = USES_PAGE - (unsigned int)(from % USES_PAGE);

		if (part > bytes - copied)
			part = bytes - copied;
		if (!usermemory_copy(from, part, (char *)to + copied))
			break;
		copied += part;
		from += part;
	}
	return copied & ~7u;
}

/* Where the thread is; in a function's first instruction if the CPU has its registers. */
static struct place_in_program place_of(struct thread *t, uint64_t what,
					uint64_t registers, unsigned int to_come)
{
	const struct arch *arch = outside.arch;
	struct place_in_program place = { .registers = registers };
	uint64_t word[2 + KEY_WORDS], key;
	unsigned int words = 2;

	if (!is_wanted(to_come))
		return place;
	word[0] = unwound(&place, number_of(arch->call_pc));
	word[1] = arch->link ? unwound(&place, arch->link) : 0;
	words += copy_stack(unwound(&place, number_of(arch->call_sp)), 8 * KEY_WORDS,
			    word + words) /
		 8;
	key = sites_key(what ^ word[0], word + 1, words - 1);
	place.number = sites_find(&t->sites, key);
	if (place.number || !outsidefile_has_room(3 + PAYLOAD_RECORDS))
		return place;
	place.number = sites_add(&t->sites, key, outside.options->stacks);
	place.is_new = place.number;
	return place;
}

/* Behind the record that has its number. */
static void put_stack(struct thread *t, const struct place_in_program *place,
		      unsigned int to_come)
{
	const struct arch *arch = outside.arch;
	unsigned int words = 0, copied, records;

	if (!place->is_new)
		return;
	memset(&payload, 0, sizeof(payload));
	for (; words < ARCH_UNWOUND && arch->unwound[words].name; words++)
		payload.word[words] = unwound(place, words);
	copied = copy_stack(payload.word[number_of(arch->call_sp)],
			    (unsigned int)outside.options->stack, &payload.word[words]);
	records = (unsigned int)((words * 8 + copied + sizeof(struct outside_record) -
				  1) /
				 sizeof(struct outside_record));
	outside_put_with(OUTSIDE_STACK, to_come, t->id, records,
			 payload.word[number_of(arch->call_pc)],
			 (uint64_t)copied << 32 | words);
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

/* A struct __kernel_timespec of the program, in ns. False: cannot be read. */
static bool time_at(uint64_t address, uint64_t *ns)
{
	struct {
		uint64_t s, ns;
	} time;

	if (!usermemory_copy(address, sizeof(time), &time))
		return false;
	*ns = time.s * 1000000000 + time.ns;
	return true;
}

/* The mode is a fact of the call: a kernel of 64 bits has other numbers for programs of
 * 32. */
static uint32_t mode_of(const struct call *call)
{
	const struct arch *arch = outside.arch;

	return in_call(call, arch->narrow_word) & arch->narrow_bits ? OUTSIDE_NARROW
								    : 0;
}

/* clock_nanosleep with a struct __kernel_timespec */
static bool is_sleep(uint32_t number)
{
	const struct arch *arch = outside.arch;

	return number == arch->call_sleep ||
	       (arch->narrow_bits && number == (arch->narrow_sleep | OUTSIDE_NARROW));
}

static void put_call(struct thread *t, const struct call *call, uint32_t place,
		     unsigned int to_come)
{
	const unsigned int *at = outside.arch->call_argument;
	uint64_t asked = in_call(call, at[2]), ns;

	outside_put(OUTSIDE_CALL, to_come, t->id, t->call, in_call(call, at[0]));
	outside_put_with(OUTSIDE_ARGUMENTS, to_come, t->id, place, in_call(call, at[1]),
			 asked);
	if (is_sleep(t->call) && time_at(asked, &ns))
		outside_put(OUTSIDE_ASKED, to_come, t->id,
			    (uint32_t)in_call(call, at[1]), ns);
}

void outsidecalls_at_call(unsigned int to_come)
{
	const struct arch *arch = outside.arch;
	struct thread *t = outside_current();
	struct place_in_program place;
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
	t->call = number | mode_of(&call);
	t->registers = registers;
	t->returns_to = in_call(&call, arch->call_pc) + arch->call_ends;
	t->waits_for = 0;
	code_end_piece(t->id, to_come);
	place = place_of(t, (uint64_t)OF_CALL << 32 | number, registers, to_come);
	put_call(t, &call, place.number, to_come);
	put_stack(t, &place, to_come);
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
	struct place_in_program place = { 0 };
	uint64_t address, flags, registers, executed = outside_cpu()->executed;

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
	registers = flags & FAULT_OF_PROGRAM ? outside_argument(3) : t->registers;
	if (registers)
		place = place_of(t, (uint64_t)OF_FAULT << 32, registers, to_come);
	outside_put(OUTSIDE_FAULT, to_come, t->id,
		    ((uint32_t)flags & DETAIL_MASK) | place.number << PLACE_SHIFT,
		    address);
	put_stack(t, &place, to_come);
}

/* --- functions of the program ---------------------------------------------------------- */

/* In another one that has not returned: of the allocator's own making. The same one
 * again: that was left by a jump, or an exception. */
static bool is_inner(const struct thread *t, unsigned int use, uint64_t stack)
{
	return t->uses && t->use != use && stack <= t->use_stack;
}

void outsidecalls_at_use(unsigned int use, unsigned int to_come)
{
	const struct arch *arch = outside.arch;
	struct thread *t = outside_current();
	struct place_in_program place;
	uint64_t to = 0, stack;

	if (!t)
		return;
	stack = outside_stack();
	if (is_inner(t, use, stack))
		return;
	if (arch->link)
		registers_read(outside.unwound[arch->link], &to);
	else
		registers_read_memory(stack, 8, &to);
	t = outside_tell(t->task, to_come);
	t->uses = true;
	t->use = use;
	t->use_returns = to;
	t->use_stack = stack;
	place = place_of(t, (uint64_t)OF_USE << 32 | use, 0, to_come);
	outside_put_with(OUTSIDE_USED, to_come, t->id,
			 use | place.number << PLACE_SHIFT, to,
			 outside_cpu()->executed - to_come);
	put_stack(t, &place, to_come);
	outside_await();
}

/* The place in the page, as the same code may have been translated at another address;
 * the stack pointer tells the rest. */
void outsidecalls_at_done(struct thread *t, uint64_t address, unsigned int to_come,
			  uint64_t executed)
{
	uint64_t result = 0, returned = t->use_stack + (outside.arch->link ? 0 : 8);

	if (address % USES_PAGE != t->use_returns % USES_PAGE ||
	    outside_stack() < returned)
		return;
	registers_read(outside.result, &result);
	outside_put_with(OUTSIDE_DONE, to_come, t->id, t->use, result, executed);
	t->uses = false;
}
