/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recorder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "longest.h"
#include "ring.h"
#include "state.h"
#include "tasks.h"
#include "windows.h"

uint64_t recorder_next_window;

static bool in_window(uint64_t at_ns)
{
	return windows_contain(at_ns, (uint64_t)virtual_clock.now_ns);
}

static void at_rest(const struct cpu *cpu, uint64_t since_ns)
{
	struct record r = record_make(RECORD_PAUSE, cpus_index(cpu), since_ns, 0);

	ring_add(r);
	if (since_ns >= recorder_next_window && in_window(since_ns) &&
	    !windows_is_empty())
		windows_add(r);
}

int recorder_init(const struct options *options)
{
	worst_init((unsigned int)options->worst, options->room);
	windows_init(options);
	tasks_init(options);
	clock_at_rest = at_rest;
	recorder_next_window = options->windows ? options->window[0].first : UINT64_MAX;
	return ring_init(options->ring);
}

/* A window begins with the interrupt state of all CPUs; the rest is recorded when it is
 * first seen, for it may have changed since the window before. */
static void record_first_state(void)
{
	for (unsigned int i = 0; i < cpus.count; i++) {
		windows_add(record_make(RECORD_INTERRUPTS, i, cpus.at_ns,
					cpus.cpu[i].interrupts));
		cpus.cpu[i].task = CPU_TASK_UNKNOWN;
		cpus.cpu[i].preempt = CPU_PREEMPT_UNKNOWN;
	}
}

static void record_window(struct cpu *cpu, const struct block *block)
{
	struct record change[STATE_CHANGES];
	unsigned int n;

	if (!in_window(cpus.at_ns))
		return;
	if (windows_is_empty())
		record_first_state();
	n = state_look_at_interrupts(cpu, change);
	for (unsigned int i = 0; i < n; i++)
		ring_add(change[i]); /* or the ring would miss a change */
	n += state_look_at_kernel(cpu, block->address, change + n);
	for (unsigned int i = 0; i < n; i++)
		windows_add(change[i]);
	windows_add(
		record_make(RECORD_BLOCK, cpus_index(cpu), cpus.at_ns, block->address));
}

/* To the ring and to windows, which see the task change, but not its name. */
static void add(const struct record *r, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		ring_add(r[i]);
		if (in_window(record_at_ns(&r[i])) && !windows_is_empty())
			windows_add(r[i]);
	}
}

static void record_task(struct cpu *cpu)
{
	struct record told[TASKS_RECORDS];
	unsigned int n = tasks_tell(cpus_index(cpu), cpus.at_ns, told);

	add(told, n);
	if (n)
		cpu->task = told[0].value;
}

static void record_changes(void)
{
	struct record change[CPUS_MAX];

	add(change, tasks_tell_changes(cpus.at_ns, change));
}

static void record_woken(const struct cpu *cpu)
{
	struct record woken;
	uint64_t task;

	if (!state_read_argument(0, &task))
		return;
	woken = record_make(RECORD_WOKEN, cpus_index(cpu), cpus.at_ns, task);
	add(&woken, 1);
}

static void record_rename(const struct cpu *cpu)
{
	struct record renamed[TASKS_RENAME];

	add(renamed, tasks_tell_rename(cpus_index(cpu), cpus.at_ns, renamed));
}

void recorder_at_request(unsigned int cpu, uint64_t at_ns, uint64_t asked)
{
	struct record r = record_make(RECORD_ASKED, cpu, at_ns, asked);

	add(&r, 1);
}

/* An entry that had interrupts go off is an interrupt's: what it interrupted may have
 * turned preemption off. */
static void record_count(const struct cpu *cpu)
{
	uint64_t count;

	if (!cpu->interrupts && state_read_count(&count))
		ring_add(record_make(RECORD_PREEMPT, cpus_index(cpu), cpus.at_ns,
				     count));
}

void recorder_at_block(struct cpu *cpu, const struct block *block)
{
	struct record change;

	if (__builtin_expect(block->after_switch, 0))
		record_task(cpu);
	if (__builtin_expect(recorder_may_be_in_window(cpus.at_ns), 0))
		record_window(cpu, block);
	if (__builtin_expect(block->wakes, 0))
		record_woken(cpu);
	if (__builtin_expect(block->renames, 0))
		record_rename(cpu);
	if (block->look_at_begin | cpu->look &&
	    state_look_at_interrupts(cpu, &change)) {
		ring_add(change);
		if (block->look_at_begin)
			record_count(cpu);
		if (cpu->interrupts && !block->in_program)
			record_changes();
	}
	cpu->look = block->look_after;
	ring_add(
		record_make(RECORD_BLOCK, cpus_index(cpu), cpus.at_ns, block->address));
}

void recorder_at_mark(const struct mark *mark)
{
	const struct record record[] = {
		record_make(RECORD_MARK, mark->cpu, mark->at_ns, mark->latency_ns),
		record_make(RECORD_SEQUENCE, mark->cpu, mark->at_ns, mark->sequence),
	};

	for (unsigned int i = 0; i < 2; i++) {
		ring_add(record[i]);
		if (in_window(mark->at_ns))
			windows_add(record[i]);
	}
	worst_offer(mark);
}

int recorder_write(const struct options *options, const char *arch)
{
	unsigned int sections = options->schedule ? longest_count() : 0;
	struct trace_header header = {
		.magic = { 'R', 'T', 'S', 'C', 'O', 'P', 'E', '\n' },
		.version = TRACE_VERSION,
		.sections = worst_count() + windows_count() + sections,
		.cpus = cpus.count,
		.shift = icount.shift,
		.quantum = options->quantum,
	};
	FILE *file = fopen(options->out, "wb");
	int failed;

	if (!file)
		return -errno;
	snprintf(header.arch, sizeof(header.arch), "%s", arch);
	trace_begin(file, &header);
	for (unsigned int i = 0; i < worst_count(); i++)
		trace_add(file, worst_path(i));
	for (unsigned int i = 0; i < windows_count(); i++)
		trace_add(file, windows_path(i));
	for (unsigned int i = 0; i < sections; i++)
		trace_add(file, longest_path(i));
	failed = ferror(file);
	return fclose(file) || failed ? -EIO : 0;
}
