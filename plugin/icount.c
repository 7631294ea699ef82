/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "icount.h"

#include <stdbool.h>
#include <string.h>

/* QEMU 10.0, include/sysemu/cpu-timers-internal.h */
#define BIAS_OFFSET  0x28
#define COUNT_OFFSET 0x40

/* All of a CPU that is common to all architectures, and not beyond the smallest. */
#define CPU_BYTES 0x3000

/* Small, so that QEMU puts all of them into `low`. */
static const uint16_t tried[] = { 0x2a35, 0x51c9, 0x1e87 };
/* And larger than `low` can be. */
#define LARGE     INT64_C(0x2b67d)
#define LOW_HOLDS 0xffff

struct icount icount;

/* What QEMU would do at the end of a turn, and at the begin of another one. */
static void renew(void *cpu, int64_t budget)
{
	current_cpu = NULL; /* or the clock would refuse to be read */
	icount_process_data(cpu);
	icount_prepare_for_run(cpu, budget);
	current_cpu = cpu;
}

static bool may_be(const char *cpu, long at, int64_t budget, int64_t extra)
{
	int64_t number[2];

	memcpy(number, cpu + at, sizeof(number));
	return number[0] == budget && number[1] == extra;
}

/* Returns the only offset at which the numbers are; or -1. */
static long find_budget(const char *cpu)
{
	long found = -1;

	for (long at = 0; at + 16 <= CPU_BYTES; at += 8) {
		if (!may_be(cpu, at, LARGE, LARGE - LOW_HOLDS))
			continue;
		if (found >= 0)
			return -1;
		found = at;
	}
	return found;
}

static bool holds(const char *cpu, long at, uint16_t value)
{
	return memcmp(cpu + at, &value, sizeof(value)) == 0;
}

static long find_low(char *cpu)
{
	bool candidate[CPU_BYTES / 2];
	long found = -1;

	memset(candidate, true, sizeof(candidate));
	for (unsigned int i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
		renew(cpu, tried[i]);
		for (long at = 0; at < CPU_BYTES; at += 2)
			candidate[at / 2] &= holds(cpu, at, tried[i]);
	}
	for (long at = 0; at < CPU_BYTES; at += 2) {
		/* the budget itself holds the number, too */
		if (!candidate[at / 2] || at == icount.budget)
			continue;
		if (found >= 0)
			return -1;
		found = at;
	}
	return found;
}

static bool clock_is_found(void)
{
	int64_t before_ns, moved_ns;

	if (*icount.count != icount_get_raw() || icount_clock_between() != icount_get())
		return false;
	before_ns = icount_get();
	icount_move_clock(1);
	moved_ns = icount_get() - before_ns;
	icount_move_clock(-1);
	return moved_ns == 1;
}

const char *icount_init(unsigned int of_block)
{
	void *cpu = current_cpu;
	bool found;

	icount.bias = (int64_t *)(timers_state + BIAS_OFFSET);
	icount.count = (int64_t *)(timers_state + COUNT_OFFSET);
	while (icount_to_ns(INT64_C(1) << icount.shift) !=
		       INT64_C(1) << 2 * icount.shift &&
	       icount.shift < 10)
		icount.shift++;
	renew(cpu, LARGE);
	icount.budget = find_budget(cpu);
	icount.extra = icount.budget + 8;
	icount.low = find_low(cpu);
	current_cpu = NULL;
	found = clock_is_found();
	current_cpu = cpu;
	if (!found)
		return "its clock";
	if (icount.budget < 0 || icount.low < 0)
		return "how many instructions are left of a CPU's turn";
	*icount.count -= of_block; /* which is counted when its turn ends */
	return NULL;
}

int64_t icount_until_timer(void)
{
	void *cpu = current_cpu;
	int64_t until_ns;

	current_cpu = NULL;
	until_ns = qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_ALL_TIMERS);
	current_cpu = cpu;
	return until_ns;
}

/* An exception gives back what is left of the block: `low` must have room for it. */
static void set_left(char *cpu, int64_t left, unsigned int of_block)
{
	int64_t most = LOW_HOLDS - (int64_t)of_block;
	uint16_t low = (uint16_t)(left < most ? left : most);

	*(int64_t *)(cpu + icount.budget) = left + of_block;
	*(int64_t *)(cpu + icount.extra) = left - low;
	*(uint16_t *)(cpu + icount.low) = low;
}

void icount_set_budget(int64_t instructions, unsigned int of_block)
{
	int64_t left = instructions > of_block ? instructions - of_block : 0;

	set_left(current_cpu, left, of_block);
}

void icount_leave(void)
{
	set_left(current_cpu, 0, 0);
	cpu_loop_exit(current_cpu);
	__builtin_unreachable();
}

void icount_leave_block(unsigned int of_block)
{
	char *cpu = current_cpu;

	*(uint16_t *)(cpu + icount.low) += (uint16_t)of_block;
	cpu_loop_exit(cpu);
	__builtin_unreachable();
}
