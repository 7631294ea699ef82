/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* QEMU's own limit where there is no timer. */
#define NO_TIMER_NS INT32_MAX

struct clock virtual_clock;
void (*clock_at_rest)(const struct cpu *cpu, uint64_t since_ns);

static struct {
	int64_t latest_ns;  /* of all CPUs */
	int64_t lowered_at; /* instructions, when the clock was last raised or lowered */
} reading;

static bool started, paused, turns_visible;

void clock_init(uint64_t quantum)
{
	/* In ns as soon as QEMU has said how long an instruction takes. */
	virtual_clock.quantum_ns = (int64_t)quantum;
}

void clock_set_turns_visible(bool visible)
{
	turns_visible = visible;
}

static void start(unsigned int of_block)
{
	const char *differs =
		turns_visible ? icount_init(of_block) : "the loop of its CPUs";

	if (differs) {
		fprintf(stderr,
			"rtscope-plugin: this QEMU is not known: it differs in %s\n",
			differs);
		exit(1);
	}
	started = true;
	virtual_clock.quantum_ns = virtual_clock.quantum_ns
					   ? virtual_clock.quantum_ns << icount.shift
					   : INT64_MAX / 4;
}

static int64_t max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Who sleeps, and who was woken at this time. */
static void look_who_sleeps(int64_t woken_ns)
{
	for (struct cpu *c = cpus.cpu; c < cpus.cpu + cpus.count; c++) {
		bool sleeps = cpu_thread_is_idle(c->identity);

		if (c->sleeps && !sleeps)
			c->time_ns = max_ns(c->time_ns, woken_ns);
		c->sleeps = sleeps;
	}
}

/* INT64_MAX: all others sleep. */
static int64_t earliest_of_others(const struct cpu *cpu)
{
	int64_t earliest_ns = INT64_MAX;

	for (const struct cpu *c = cpus.cpu; c < cpus.cpu + cpus.count; c++)
		if (c != cpu && !c->sleeps && c->time_ns < earliest_ns)
			earliest_ns = c->time_ns;
	return earliest_ns;
}

static void ask_for_look(void)
{
	virtual_clock.look = true;
	cpus_look_at_next_block();
}

static void raise_clock(int64_t by_ns)
{
	icount_move_clock(by_ns);
	virtual_clock.raised_ns += by_ns;
	ask_for_look();
	reading.lowered_at = icount_executed();
}

/* No further than to the next timer, as that may be of one that sleeps. */
static void stand_still(struct cpu *cpu, int64_t until_timer_ns)
{
	int64_t to_ns = virtual_clock.now_ns + until_timer_ns;

	if (cpu->held_until_ns < to_ns)
		to_ns = cpu->held_until_ns;
	cpu->time_ns = max_ns(cpu->time_ns, to_ns);
	cpus_end_turn();
	icount_leave();
}

void clock_begin_turn(void *identity, unsigned int of_block)
{
	struct cpu *cpu = cpus_begin_turn(identity);
	int64_t until_ns, to_timer_ns, to_quantum_ns = INT64_MAX, budget;

	if (__builtin_expect(!started, 0))
		start(of_block);
	look_who_sleeps(virtual_clock.now_ns);
	until_ns = icount_until_timer();
	if (until_ns < 0 || until_ns > NO_TIMER_NS)
		until_ns = NO_TIMER_NS;
	if (__builtin_expect(cpu->held_until_ns > cpu->time_ns, 0))
		stand_still(cpu, until_ns);
	to_timer_ns = virtual_clock.now_ns + until_ns - cpu->time_ns;
	if (earliest_of_others(cpu) != INT64_MAX)
		to_quantum_ns =
			virtual_clock.now_ns + virtual_clock.quantum_ns - cpu->time_ns;
	budget = (to_timer_ns + (1 << icount.shift) - 1) >> icount.shift;
	/* The block may be too long for one that is ahead: QEMU chose it for the CPU that
	 * is furthest behind, which always has its turn. */
	if (budget < of_block || to_quantum_ns <= 0) {
		cpus_end_turn();
		icount_leave();
	}
	icount_move_clock(cpu->time_ns - icount_clock_between());
	icount_set_budget(budget, of_block);
	/* It arms timers by the time that it has read. */
	if (cpu->read_ns > icount_clock())
		raise_clock(cpu->read_ns - icount_clock());
	cpus.turn_ends = to_quantum_ns == INT64_MAX
				 ? UINT64_MAX
				 : cpus_all_executed() +
					   (uint64_t)(to_quantum_ns >> icount.shift);
}

void clock_before_turns(void)
{
	if (started)
		virtual_clock.now_ns =
			max_ns(virtual_clock.now_ns, icount_clock_between());
}

/* One that waits for another need not be executed until that has had its turn. */
static void let_pass(struct cpu *cpu)
{
	int64_t others_ns = earliest_of_others(cpu);

	paused = false;
	if (others_ns != INT64_MAX)
		cpu->time_ns = max_ns(cpu->time_ns, others_ns);
}

static void leave_cpu(struct cpu *cpu)
{
	int64_t ended_ns;

	icount_move_clock(-virtual_clock.raised_ns);
	virtual_clock.raised_ns = 0;
	cpu->time_ns = ended_ns = icount_clock_between();
	look_who_sleeps(ended_ns);
	if (paused)
		let_pass(cpu);
	if (clock_at_rest &&
	    (cpu->sleeps || cpu->time_ns > ended_ns || cpu->held_until_ns > ended_ns))
		clock_at_rest(cpu, (uint64_t)ended_ns);
}

void clock_end_turn(void)
{
	struct cpu *cpu = cpus_end_turn();
	int64_t earliest_ns;

	if (!started)
		return;
	if (cpu)
		leave_cpu(cpu);
	else
		look_who_sleeps(virtual_clock.now_ns);
	earliest_ns = earliest_of_others(NULL);
	if (earliest_ns != INT64_MAX)
		virtual_clock.now_ns = max_ns(virtual_clock.now_ns, earliest_ns);
	icount_move_clock(virtual_clock.now_ns - icount_clock_between());
}

void clock_at_reading(void)
{
	int64_t behind_ns = reading.latest_ns - icount_clock();

	if (behind_ns > 0)
		raise_clock(behind_ns);
	else
		reading.latest_ns -= behind_ns;
	cpus.now->read_ns = reading.latest_ns;
}

void clock_may_wake(void)
{
	virtual_clock.may_wake = true;
	ask_for_look();
}

/* A CPU that is woken by this one goes on from here, and this one no further than a
 * quantum before it. */
static void look_who_wakes(struct cpu *cpu, unsigned int of_block)
{
	bool was_alone = earliest_of_others(cpu) == INT64_MAX;
	int64_t own_ns = clock_own_ns(of_block);

	virtual_clock.may_wake = false;
	look_who_sleeps(own_ns);
	if (was_alone && earliest_of_others(cpu) != INT64_MAX) {
		virtual_clock.now_ns = own_ns;
		cpus.turn_ends = cpus_all_executed() +
				 (uint64_t)(virtual_clock.quantum_ns >> icount.shift);
	}
}

static void lower(void)
{
	int64_t executed = icount_executed();
	int64_t passed_ns = (executed - reading.lowered_at) << icount.shift;

	if (passed_ns > virtual_clock.raised_ns)
		passed_ns = virtual_clock.raised_ns;
	if (passed_ns < 0)
		return;
	icount_move_clock(-passed_ns);
	virtual_clock.raised_ns -= passed_ns;
	reading.lowered_at = executed;
}

void clock_look(unsigned int of_block)
{
	if (virtual_clock.raised_ns)
		lower();
	if (virtual_clock.may_wake)
		look_who_wakes(cpus.now, of_block);
	virtual_clock.look = virtual_clock.raised_ns;
}

void clock_at_pause(void)
{
	paused = true;
}

void clock_hold(unsigned int of_block, uint64_t ns)
{
	struct cpu *cpu = cpus.now;

	cpu->held_until_ns =
		clock_own_ns(of_block) + (int64_t)(ns >> icount.shift << icount.shift);
	cpu_exit(cpu->identity);
	icount_leave_block(of_block);
}
