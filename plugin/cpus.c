/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cpus.h"

#include <stdio.h>
#include <stdlib.h>

static struct cpu nobody;

struct cpus cpus = { .now = &nobody, .quantum_ends = UINT64_MAX };

void cpus_init(uint64_t quantum)
{
	cpus.quantum = quantum;
}

void cpus_add(unsigned int index)
{
	if (index >= CPUS_MAX) {
		fprintf(stderr, "rtscope-plugin: more than %d CPUs\n", CPUS_MAX);
		exit(1);
	}
	cpus.cpu[index] = (struct cpu){
		.identity = current_cpu,
		.look = true,
		.interrupts = false, /* so every CPU comes out of its reset */
		.preempt = CPU_PREEMPT_UNKNOWN,
		.task = CPU_TASK_UNKNOWN,
	};
	if (index >= cpus.count)
		cpus.count = index + 1;
}

static uint64_t quantum_so_far(const struct cpu *cpu)
{
	return cpu == cpus.now ? cpus.executed - cpus.quantum_began : 0;
}

uint64_t cpus_executed(const struct cpu *cpu)
{
	return cpu->executed + quantum_so_far(cpu);
}

static void renew_quantum(void)
{
	cpus.quantum_ends = cpus.quantum ? cpus.executed + cpus.quantum : UINT64_MAX;
}

void cpus_begin_quantum(void *identity)
{
	struct cpu *next = cpus.cpu;

	while (next < cpus.cpu + cpus.count && next->identity != identity)
		next++;
	if (next == cpus.cpu + cpus.count) {
		fprintf(stderr,
			"rtscope-plugin: a CPU executes that was not announced\n");
		exit(1);
	}
	cpus.now->executed = cpus_executed(cpus.now);
	cpus.now = next;
	cpus.quantum_began = cpus.executed;
	renew_quantum();
}

/* If no other CPU wants to run, the same one goes on, with a new quantum. */
void cpus_end_quantum(void)
{
	cpus.quanta_ended++;
	cpu_exit(cpus.now->identity);
	renew_quantum();
}
