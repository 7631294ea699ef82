/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpus.h"

#include <stdio.h>
#include <stdlib.h>

static struct cpu nobody;

struct cpus cpus = {
	.now = &nobody,
	.before = -CPUS_LOOK,
	.counted = CPUS_LOOK,
	.turn_ends = UINT64_MAX,
};

void cpus_add(unsigned int index)
{
	if (index >= CPUS_MAX) {
		fprintf(stderr, "rtscope-plugin: more than %d CPUs\n", CPUS_MAX);
		exit(1);
	}
	cpus.cpu[index] = (struct cpu){
		.identity = current_cpu,
		.sleeps = true, /* until it is looked at */
		.look = true,
		.interrupts = false, /* so every CPU comes out of its reset */
		.preempt = CPU_PREEMPT_UNKNOWN,
		.task = CPU_TASK_UNKNOWN,
	};
	if (index >= cpus.count)
		cpus.count = index + 1;
}

static uint64_t turn_so_far(const struct cpu *cpu)
{
	return cpu == cpus.now ? cpus_all_executed() - cpus.turn_began : 0;
}

uint64_t cpus_executed(const struct cpu *cpu)
{
	return cpu->executed + turn_so_far(cpu);
}

static struct cpu *find(const void *identity)
{
	for (struct cpu *c = cpus.cpu; c < cpus.cpu + cpus.count; c++)
		if (c->identity == identity)
			return c;
	fprintf(stderr, "rtscope-plugin: a CPU executes that was not announced\n");
	exit(1);
}

struct cpu *cpus_begin_turn(void *identity)
{
	struct cpu *next = find(identity);

	if (cpus.now != &nobody) {
		fprintf(stderr, "rtscope-plugin: this QEMU is not known: "
				"a turn began before another one had ended\n");
		exit(1);
	}
	cpus.now = next;
	cpus.turn_began = cpus_all_executed();
	return next;
}

struct cpu *cpus_end_turn(void)
{
	struct cpu *cpu = cpus.now;

	if (cpu == &nobody)
		return NULL;
	cpu->executed = cpus_executed(cpu);
	cpus.now = &nobody;
	cpus_look_at_next_block();
	return cpu;
}

static void end_quantum(void)
{
	cpus.quanta_ended++;
	cpus.turn_ends = UINT64_MAX;
	cpu_exit(cpus.now->identity);
}

void cpus_before_count(unsigned int instructions, bool look_at_next_block)
{
	uint64_t executed = cpus_all_executed(), left;

	if (executed + instructions >= cpus.turn_ends)
		end_quantum();
	left = look_at_next_block ? 0 : cpus.turn_ends - executed;
	cpus.counted = left < CPUS_LOOK ? CPUS_LOOK - left : 0;
	cpus.before = executed - cpus.counted;
}
