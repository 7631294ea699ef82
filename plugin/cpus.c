/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpus.h"

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"

static struct cpu nobody;

struct cpus cpus = { .now = &nobody, .turn_ends = UINT64_MAX };

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
	return cpu == cpus.now ? cpus.executed - cpus.turn_began : 0;
}

uint64_t cpus_executed(const struct cpu *cpu)
{
	return cpu->executed + turn_so_far(cpu);
}

void cpus_begin_turn(void *identity, unsigned int of_block)
{
	struct cpu *next = cpus.cpu;

	while (next < cpus.cpu + cpus.count && next->identity != identity)
		next++;
	if (next == cpus.cpu + cpus.count) {
		fprintf(stderr,
			"rtscope-plugin: a CPU executes that was not announced\n");
		exit(1);
	}
	if (cpus.now != &nobody) {
		fprintf(stderr, "rtscope-plugin: this QEMU is not known: "
				"a turn began before another one had ended\n");
		exit(1);
	}
	cpus.now = next;
	cpus.turn_began = cpus.executed;
	clock_begin_turn(next, of_block);
}

struct cpu *cpus_end_turn(void)
{
	struct cpu *cpu = cpus.now;

	if (cpu == &nobody)
		return NULL;
	cpu->executed = cpus_executed(cpu);
	cpus.now = &nobody;
	return cpu;
}

void cpus_end_quantum(void)
{
	cpus.quanta_ended++;
	cpus.turn_ends = UINT64_MAX;
	cpu_exit(cpus.now->identity);
}
