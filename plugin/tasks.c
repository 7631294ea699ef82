/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tasks.h"

#include <string.h>

#include "cpus.h"
#include "registers.h"
#include "state.h"

#define WORD       8
#define NAME_WORDS 2
/* task_struct has some 10,000 bytes in the distributions' kernels */
#define LARGEST_TASK 32768

/* prio, static_prio, normal_prio and rt_priority of the first task, in a row:
 * include/linux/sched.h and init/init_task.c, the same from Linux 2.6 to 7.x */
#define PRIORITY       4
#define OWN_PRIORITY   (2 * PRIORITY) /* normal_prio */
#define FIRST_PRIORITY 120

struct told {
	struct {
		enum record_kind kind;
		uint64_t value;
	} record[TASKS_RECORDS];
	unsigned int records;
};

static struct {
	uint64_t first;    /* address of the first task; 0: names are not asked for */
	uint64_t offset;   /* of the name; 0 as long as it was not found */
	uint64_t priority; /* likewise; 0 too if it is not where it should be */
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

static bool has_priorities(uint64_t address)
{
	uint64_t value;

	for (unsigned int i = 0; i < 4; i++)
		if (!registers_read_memory(address + i * PRIORITY, PRIORITY, &value) ||
		    (uint32_t)value != (i < 3 ? FIRST_PRIORITY : 0))
			return false;
	return true;
}

/* A name is aligned as what lies before it: pointers, or at the least integers. */
static bool find_name(void)
{
	if (!tasks.first)
		return false;
	for (uint64_t at = WORD; !tasks.offset && at < LARGEST_TASK; at += WORD / 2)
		if (is_swapper(tasks.first + at))
			tasks.offset = at;
	for (uint64_t at = WORD; !tasks.priority && at < tasks.offset; at += PRIORITY)
		if (has_priorities(tasks.first + at))
			tasks.priority = at;
	if (!tasks.offset)
		tasks.first = 0; /* not looked for again at each switch */
	return tasks.offset;
}

static bool read_name(uint64_t task, uint64_t name[NAME_WORDS])
{
	return (tasks.offset || find_name()) &&
	       registers_read_memory(task + tasks.offset, WORD, &name[0]) &&
	       registers_read_memory(task + tasks.offset + WORD, WORD, &name[1]);
}

/* `prio` in the lower half of a word, and by how much the task's own priority,
 * `normal_prio`, is less urgent in the upper half: the kernel lends it another's. */
static bool read_priority(uint64_t task, uint32_t *out)
{
	uint64_t at = task + tasks.priority, used, own;

	if (!registers_read_memory(at, PRIORITY, &used) ||
	    !registers_read_memory(at + OWN_PRIORITY, PRIORITY, &own))
		return false;
	*out = (uint32_t)(own - used) << 16 | (uint16_t)used;
	return true;
}

static void add(struct told *told, enum record_kind kind, uint64_t value)
{
	told->record[told->records].kind = kind;
	told->record[told->records++].value = value;
}

unsigned int tasks_tell(unsigned int cpu, uint64_t at, struct record out[TASKS_RECORDS])
{
	struct told *told = &tasks.told[cpu];
	uint64_t task, name[NAME_WORDS];
	uint32_t priority;

	if (!state_read_task(&task))
		return 0;
	told->records = 0;
	add(told, RECORD_TASK, task);
	if (read_name(task, name)) {
		add(told, RECORD_NAME, name[0]);
		add(told, RECORD_NAME, name[1]);
		if (tasks.priority && read_priority(task, &priority))
			add(told, RECORD_PRIORITY, priority);
	}
	return tasks_last(cpu, at, out);
}

unsigned int tasks_tell_changes(uint64_t at, struct record out[CPUS_MAX])
{
	unsigned int n = 0;

	for (unsigned int cpu = 0; tasks.priority && cpu < cpus.count; cpu++) {
		struct told *told = &tasks.told[cpu];
		uint64_t *last = &told->record[TASKS_RECORDS - 1].value;
		uint32_t priority;

		if (told->records != TASKS_RECORDS ||
		    !read_priority(told->record[0].value, &priority) ||
		    priority == *last)
			continue;
		out[n++] = record_make(RECORD_CHANGE, cpu, at, *last << 32 | priority);
		*last = priority;
	}
	return n;
}

/* A name ends with a zero, and what lies behind it may be anything. */
static bool read_new_name(uint64_t from, uint64_t name[NAME_WORDS])
{
	uint64_t byte = 1;

	name[0] = name[1] = 0;
	for (unsigned int i = 0; i < NAME_WORDS * WORD - 1 && byte; i++) {
		if (!registers_read_memory(from + i, 1, &byte))
			return false;
		name[i / WORD] |= byte << 8 * (i % WORD);
	}
	return true;
}

static void set_name(uint64_t task, const uint64_t name[NAME_WORDS])
{
	for (unsigned int cpu = 0; cpu < cpus.count; cpu++) {
		struct told *told = &tasks.told[cpu];

		if (told->records > NAME_WORDS && told->record[0].value == task)
			for (unsigned int i = 0; i < NAME_WORDS; i++)
				told->record[1 + i].value = name[i];
	}
}

unsigned int tasks_tell_rename(unsigned int cpu, uint64_t at,
			       struct record out[TASKS_RENAME])
{
	uint64_t task, from, name[2 * NAME_WORDS], *new = name + NAME_WORDS;

	if (!state_read_argument(0, &task) || !state_read_argument(1, &from) ||
	    !read_name(task, name) || !read_new_name(from, new) ||
	    strncmp((const char *)name, (const char *)new, NAME_WORDS * WORD) == 0)
		return 0;
	set_name(task, new);
	out[0] = record_make(RECORD_RENAMED, cpu, at, task);
	for (unsigned int i = 0; i < 2 * NAME_WORDS; i++)
		out[1 + i] = record_make(RECORD_NAME, cpu, at, name[i]);
	return TASKS_RENAME;
}

unsigned int tasks_last(unsigned int cpu, uint64_t at, struct record out[TASKS_RECORDS])
{
	const struct told *told = &tasks.told[cpu];

	for (unsigned int i = 0; i < told->records; i++)
		out[i] = record_make(told->record[i].kind, cpu, at,
				     told->record[i].value);
	return told->records;
}
