/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tasks.h"

#include <string.h>

#include "cpus.h"
#include "registers.h"
#include "state.h"

#define WORD 8
/* task_struct has some 10,000 bytes in the distributions' kernels */
#define LARGEST_TASK 32768

struct told {
	uint64_t value[TASKS_RECORDS];
	unsigned int values;
};

static struct {
	uint64_t first;  /* address of the first task; 0: names are not asked for */
	uint64_t offset; /* of the name; 0 as long as it was not found */
	struct told told[CPUS_MAX];
} tasks;

void tasks_init(const struct options *options)
{
	tasks.first = options->first_task;
}

static bool is_swapper(uint64_t address)
{
	char name[WORD];
	uint64_t word;

	if (!registers_read_memory(address, WORD, &word))
		return false;
	memcpy(name, &word, WORD);
	return memcmp(name, "swapper", WORD - 1) == 0 &&
	       (name[WORD - 1] == '\0' || name[WORD - 1] == '/');
}

/* A name is aligned as what lies before it: pointers, or at the least integers. */
static bool find_name(void)
{
	if (!tasks.first)
		return false;
	for (uint64_t at = WORD; !tasks.offset && at < LARGEST_TASK; at += WORD / 2)
		if (is_swapper(tasks.first + at))
			tasks.offset = at;
	if (!tasks.offset)
		tasks.first = 0; /* not looked for again at each switch */
	return tasks.offset;
}

unsigned int tasks_tell(unsigned int cpu, uint64_t at, struct record out[TASKS_RECORDS])
{
	struct told *told = &tasks.told[cpu];
	uint64_t task;

	if (!state_read_task(&task))
		return 0;
	told->value[0] = task;
	told->values = 1;
	if ((tasks.offset || find_name()) &&
	    registers_read_memory(task + tasks.offset, WORD, &told->value[1]) &&
	    registers_read_memory(task + tasks.offset + WORD, WORD, &told->value[2]))
		told->values = TASKS_RECORDS;
	return tasks_last(cpu, at, out);
}

unsigned int tasks_last(unsigned int cpu, uint64_t at, struct record out[TASKS_RECORDS])
{
	const struct told *told = &tasks.told[cpu];

	for (unsigned int i = 0; i < told->values; i++)
		out[i] = record_make(i ? RECORD_NAME : RECORD_TASK, cpu, at,
				     told->value[i]);
	return told->values;
}
