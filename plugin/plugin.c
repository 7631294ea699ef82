/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rtscope-plugin - bounds the quanta of a virtual board's CPUs, counts instructions, and
 * records the paths of its worst wake-ups.
 *
 * Nothing of it reaches the guest: with and without recording, every result is the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch.h"
#include "blocks.h"
#include "clock.h"
#include "code.h"
#include "cpus.h"
#include "mainloop.h"
#include "options.h"
#include "outside.h"
#include "parts.h"
#include "progress.h"
#include "qemu.h"
#include "recorder.h"
#include "registers.h"
#include "requests.h"
#include "sections.h"
#include "state.h"
#include "summary.h"

#include "../agent/marker.h"

#define EXPORTED __attribute__((visibility("default")))

/* The oldest interface that lets registers be read. */
EXPORTED int qemu_plugin_version = 4;

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
				 int argc, char **argv);

static struct {
	struct options options;
	const struct arch *arch;
	struct qemu_plugin_register *latency, *sequence;
	uint64_t in_programs; /* of all executed instructions */
	struct marks marks;
} plugin;

/* Kernels live in the upper half of the addresses. */
static bool in_program(uint64_t address)
{
	return !(address >> 63);
}

static void give_up(const char *what, const char *which)
{
	fprintf(stderr, "rtscope-plugin: %s %s\n", what, which);
	exit(1);
}

static void at_cpu(qemu_plugin_id_t id, unsigned int index)
{
	const char *missing;

	(void)id;
	cpus_add(index);
	mainloop_at_cpu();
	if (plugin.latency)
		return;
	plugin.latency = registers_find(plugin.arch->latency);
	plugin.sequence = registers_find(plugin.arch->sequence);
	if (!plugin.latency || !plugin.sequence)
		give_up("the CPU has no register", plugin.arch->latency);
	missing = state_init(plugin.arch, &plugin.options);
	if (missing &&
	    (plugin.options.out || plugin.options.program || plugin.options.has_parts))
		give_up("the CPU has no register", missing);
	if ((plugin.options.program && (missing = outside_registers())) ||
	    (plugin.options.has_parts && (missing = parts_registers())))
		give_up("the CPU has no register", missing);
	if (plugin.options.schedule)
		sections_init(plugin.arch, &plugin.options);
	if (plugin.options.wake && (missing = requests_watch(recorder_at_request)))
		give_up("of this QEMU", missing);
}

/* QEMU's end is asked for under its lock, as an interrupt of another CPU is. */
static __attribute__((noinline)) void look_for_end(void)
{
	if (virtual_clock.may_wake && mainloop_is_to_end())
		summary_take_counts();
}

static __attribute__((noinline)) void look_at_block(unsigned int instructions)
{
	clock_cpu_at_block(instructions);
	look_for_end();
	clock_at_block(instructions);
	cpus_before_count(instructions, virtual_clock.look);
}

/* Userdata: how many instructions the block has; read from memory they would cost a
 * cache miss at every other block, more than all the rest of this. */
static void at_block(unsigned int index, void *userdata)
{
	unsigned int instructions = (unsigned int)(uintptr_t)userdata;

	(void)index;
	if (__builtin_expect(cpus_is_look_due(instructions), 0))
		look_at_block(instructions);
	cpus.counted += instructions;
}

/* All that is to be known of most blocks is in the bits of the userdata. */
enum { ADDRESS_SHIFT = 16 };

static void at_block_of_program(unsigned int index, void *userdata)
{
	at_block(index, userdata);
	plugin.in_programs += (unsigned int)(uintptr_t)userdata;
}

static void at_outside(uint64_t address, unsigned int instructions)
{
	outside_count(instructions);
	if (__builtin_expect(outside_awaits, 0))
		outside_at_program(address, instructions);
}

/* Userdata: as of a plain block. */
static void at_block_seen_outside(unsigned int index, void *userdata)
{
	unsigned int instructions = (uint16_t)(uintptr_t)userdata;

	at_block_of_program(index, (void *)(uintptr_t)instructions);
	at_outside((uintptr_t)userdata >> ADDRESS_SHIFT, instructions);
}

static void at_block_of_code(unsigned int index, void *userdata)
{
	const struct block *block = userdata;

	at_block_of_program(index, (void *)(uintptr_t)block->instructions);
	code_at_block(block);
	at_outside(block->address, block->instructions);
}

/* After what is done at every block of a board that is recorded. */
static void at_recorded_seen_outside(unsigned int index, void *userdata)
{
	(void)index;
	at_outside((uintptr_t)userdata >> ADDRESS_SHIFT, (uint16_t)(uintptr_t)userdata);
}

enum { HOOK_SHIFT = 8, HOOK_MASK = (1 << HOOK_SHIFT) - 1 };
_Static_assert(1 + OPTIONS_HOOKS + OPTIONS_USES <= HOOK_MASK, "hooks do not fit");

static void at_possible_birth(unsigned int index, void *userdata)
{
	unsigned int instructions = (unsigned int)(uintptr_t)userdata;

	(void)index;
	if (__builtin_expect(!outside_awaits, 1))
		return;
	clock_cpu_at_block(instructions);
	outside_at_possible_birth(instructions);
}

/* Userdata: the hook, and how many instructions its block has. */
static void at_hook(unsigned int index, void *userdata)
{
	(void)index;
	outside_at_hook((uintptr_t)userdata & HOOK_MASK,
			(unsigned int)((uintptr_t)userdata >> HOOK_SHIFT));
}

/* Userdata: as of the hook of a program. */
static void at_place_of_parts(unsigned int index, void *userdata)
{
	(void)index;
	parts_at_hook((uintptr_t)userdata & HOOK_MASK,
		      (unsigned int)((uintptr_t)userdata >> HOOK_SHIFT));
}

static struct cpu *begin_block(const struct block *block)
{
	struct cpu *cpu = clock_cpu_at_block(block->instructions);

	if (__builtin_expect(virtual_clock.look, 0))
		look_for_end();
	clock_at_block(block->instructions);
	cpus.at_ns = (uint64_t)clock_own_ns(block->instructions);
	return cpu;
}

static void count_block(const struct block *block, const struct cpu *cpu)
{
	cpus_before_count(block->instructions, virtual_clock.look || cpu->look);
	cpus.counted += block->instructions;
	plugin.in_programs += block->in_program;
}

static void at_recorded_block(unsigned int index, void *userdata)
{
	const struct block *block = userdata;
	struct cpu *cpu = begin_block(block);

	(void)index;
	recorder_at_block(cpu, block);
	count_block(block, cpu);
	clock_remember_turn();
}

static void at_watched_block(unsigned int index, void *userdata)
{
	const struct block *block = userdata;
	struct cpu *cpu = begin_block(block);

	(void)index;
	recorder_at_block(cpu, block);
	sections_at_block(cpu, block);
	count_block(block, cpu);
}

static bool is_plain(const struct block *block)
{
	int64_t address = (int64_t)block->address;

	return !block->look_at_begin && !block->look_after && !block->after_switch &&
	       !block->wakes && !block->renames &&
	       block->instructions >> ADDRESS_SHIFT == 0 &&
	       (int64_t)(block->address << ADDRESS_SHIFT) >> ADDRESS_SHIFT == address;
}

static void *as_userdata(const struct block *block)
{
	return (void *)(uintptr_t)(block->address << ADDRESS_SHIFT |
				   block->instructions);
}

static __attribute__((noinline)) void look_at_plain_block(uint64_t address,
							  unsigned int instructions)
{
	const struct block block = {
		.address = address,
		.instructions = instructions,
		.in_program = in_program(address) ? instructions : 0,
	};

	at_recorded_block(0, (void *)(uintptr_t)&block);
}

static void at_plain_block(unsigned int index, void *userdata)
{
	uint64_t address = (uint64_t)((int64_t)(uintptr_t)userdata >> ADDRESS_SHIFT);
	unsigned int instructions = (uint16_t)(uintptr_t)userdata;
	uint64_t at_ns;

	(void)index;
	if (__builtin_expect(cpus_is_look_due(instructions), 0)) {
		look_at_plain_block(address, instructions);
		return;
	}
	at_ns = clock_turn_ns(instructions);
	if (__builtin_expect(recorder_may_be_in_window(at_ns), 0)) {
		look_at_plain_block(address, instructions);
		return;
	}
	recorder_at_plain_block(cpus_index(cpus.now), at_ns, address);
	cpus.counted += instructions;
	plugin.in_programs += in_program(address) ? instructions : 0;
}

/* Userdata: twice how many instructions of the block are still to come, the marker
 * included, as they are counted already; plus 1 in a program. */
static void at_marker(unsigned int index, void *userdata)
{
	uint64_t to_come = (uintptr_t)userdata >> 1;
	bool of_program = (uintptr_t)userdata & 1;
	struct mark mark = {
		.cpu = cpus_index(cpus.now),
		.at_ns = (uint64_t)clock_own_ns(to_come),
	};
	uint64_t executed = cpus_all_executed() - to_come;

	(void)index;
	if (!registers_read(plugin.latency, &mark.latency_ns) ||
	    !registers_read(plugin.sequence, &mark.sequence))
		give_up("cannot read", "the marker's registers");
	if (mark.latency_ns == MARKER_OF_PROGRAM) {
		if (plugin.options.program)
			outside_begin_program();
		return;
	}
	plugin.marks.count++;
	plugin.marks.last = executed;
	plugin.marks.last_in_programs = plugin.in_programs - of_program * to_come;
	if (plugin.options.has_parts)
		parts_at_mark(mark.latency_ns);
	if (plugin.options.out)
		recorder_at_mark(&mark);
	if (plugin.options.schedule)
		sections_at_mark(cpus.now);
}

static void at_clock(unsigned int index, void *userdata)
{
	(void)index;
	(void)userdata;
	clock_at_reading();
}

/* Userdata: as of a marker. */
static void at_clock_of_parts(unsigned int index, void *userdata)
{
	(void)index;
	clock_at_reading();
	parts_at_reading((uintptr_t)userdata & 1,
			 (unsigned int)((uintptr_t)userdata >> 1));
}

static void at_pause(unsigned int index, void *userdata)
{
	(void)index;
	(void)userdata;
	clock_at_pause();
}

static void call_before(struct qemu_plugin_insn *insn, qemu_udata_cb callback)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, callback, QEMU_READS_NO_REGISTERS,
					       NULL);
}

static void call_at_clock(struct qemu_plugin_insn *insn, size_t to_come,
			  bool of_program)
{
	if (plugin.options.has_parts)
		qemu_plugin_register_vcpu_insn_exec_cb(
			insn, at_clock_of_parts, QEMU_READS_REGISTERS,
			(void *)(uintptr_t)(to_come << 1 | of_program));
	else
		call_before(insn, at_clock);
}

static void call_at_block(struct qemu_plugin_tb *tb, const struct block *block)
{
	bool of_program = plugin.options.program && block->in_program &&
			  outside_is_program(block->address);

	if (plugin.options.code && of_program) {
		qemu_plugin_register_vcpu_tb_exec_cb(
			tb, at_block_of_code, QEMU_READS_REGISTERS,
			(void *)(uintptr_t)blocks_intern(*block));
	} else if (!plugin.options.out && of_program) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_block_seen_outside,
						     QEMU_READS_REGISTERS,
						     as_userdata(block));
	} else if (!plugin.options.out) {
		qemu_plugin_register_vcpu_tb_exec_cb(
			tb, block->in_program ? at_block_of_program : at_block,
			QEMU_READS_NO_REGISTERS,
			(void *)(uintptr_t)block->instructions);
	} else if (!plugin.options.schedule && is_plain(block)) {
		qemu_plugin_register_vcpu_tb_exec_cb(
			tb, at_plain_block, QEMU_READS_REGISTERS, as_userdata(block));
	} else {
		qemu_plugin_register_vcpu_tb_exec_cb(
			tb,
			plugin.options.schedule ? at_watched_block : at_recorded_block,
			QEMU_READS_REGISTERS, (void *)(uintptr_t)blocks_intern(*block));
	}
}

static void call_at_hook(struct qemu_plugin_tb *tb, qemu_udata_cb callback,
			 const struct block *block, unsigned int hook)
{
	if (hook)
		qemu_plugin_register_vcpu_insn_exec_cb(
			qemu_plugin_tb_get_insn(tb, 0), callback, QEMU_READS_REGISTERS,
			(void *)((uintptr_t)block->instructions << HOOK_SHIFT | hook));
}

static void call_outside(struct qemu_plugin_tb *tb, const struct block *block)
{
	call_at_hook(tb, at_hook, block, outside_hook_at(block->address));
	if (block->in_program && plugin.options.out &&
	    outside_is_program(block->address))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, at_recorded_seen_outside,
						     QEMU_READS_REGISTERS,
						     as_userdata(block));
}

static void at_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct block block =
		blocks_at(qemu_plugin_tb_vaddr(tb), (unsigned int)n, &plugin.options);
	bool of_program = block.in_program;
	bool watched = plugin.options.schedule != 0;

	(void)id;
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		struct instruction in = { .size = 0 };

		in.size = qemu_plugin_insn_data(insn, in.byte, sizeof(in.byte));
		block.look_at_begin |= plugin.arch->is_entry(&in);
		block.look_after |= plugin.arch->may_switch_interrupts(&in);
		block.may_count |= watched && !of_program &&
				   plugin.arch->may_count(&in, &plugin.options.preempt);
		block.waits |= watched && plugin.arch->is_wait(&in);
		if (plugin.arch->reads_clock(&in))
			call_at_clock(insn, n - i, of_program);
		if (plugin.arch->is_pause(&in))
			call_before(insn, at_pause);
		if (plugin.arch->is_marker(&in))
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, at_marker, QEMU_READS_REGISTERS,
				(void *)(uintptr_t)((n - i) << 1 | of_program));
	}
	if (plugin.options.phases && of_program)
		qemu_plugin_register_vcpu_tb_exec_cb(
			tb, at_possible_birth, QEMU_READS_REGISTERS,
			(void *)(uintptr_t)block.instructions);
	call_at_block(tb, &block);
	if (plugin.options.program)
		call_outside(tb, &block);
	if (plugin.options.has_parts)
		call_at_hook(tb, at_place_of_parts, &block,
			     parts_hook_at(block.address));
}

static void at_exit(qemu_plugin_id_t id, void *userdata)
{
	const char *wrong;
	int err;

	(void)id;
	(void)userdata;
	if (plugin.options.summary)
		summary_write(plugin.options.summary, plugin.options.quantum,
			      &plugin.marks, plugin.options.has_parts);
	wrong = plugin.options.program ? outside_end() : NULL;
	if (wrong)
		fprintf(stderr, "rtscope-plugin: %s: %s\n", plugin.options.program,
			wrong);
	if (!plugin.options.out)
		return;
	err = recorder_write(&plugin.options, plugin.arch->name);
	if (err)
		fprintf(stderr, "rtscope-plugin: %s: %s\n", plugin.options.out,
			strerror(-err));
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
			char **argv)
{
	const char *wrong = options_parse(argc, argv, &plugin.options);

	if (wrong) {
		fprintf(stderr, "rtscope-plugin: bad argument: %s\n", wrong);
		return -1;
	}
	plugin.arch = arch_find(info->target_name);
	if (!plugin.arch || !info->system_emulation) {
		fprintf(stderr, "rtscope-plugin: no boards of the architecture %s\n",
			info->target_name);
		return -1;
	}
	if (plugin.options.program && outside_init(&plugin.options, plugin.arch)) {
		fprintf(stderr, "rtscope-plugin: cannot write %s\n",
			plugin.options.program);
		return -1;
	}
	if (plugin.options.has_parts)
		parts_init(&plugin.options, plugin.arch);
	mainloop_init();
	clock_init(plugin.options.quantum);
	if (plugin.options.out && recorder_init(&plugin.options)) {
		fprintf(stderr, "rtscope-plugin: no memory for the ring\n");
		return -1;
	}
	wrong = plugin.options.progress;
	if (wrong && progress_begin(wrong, &plugin.marks.count)) {
		fprintf(stderr, "rtscope-plugin: cannot write %s\n", wrong);
		return -1;
	}
	qemu_plugin_register_vcpu_init_cb(id, at_cpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, at_translation);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	return 0;
}
