/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "state.h"

#include "registers.h"

static struct {
	const struct arch *arch;
	struct qemu_plugin_register *flags;
	const struct place *task_place, *preempt_place;
	struct qemu_plugin_register *task, *preempt, *argument[STATE_ARGUMENTS];
} state;

static const char *find(const struct place *place, struct qemu_plugin_register **out)
{
	if (!place->name[0])
		return NULL;
	*out = registers_find(place->name);
	return *out ? NULL : place->name;
}

const char *state_init(const struct arch *arch, const struct options *options)
{
	const char *missing;

	state.arch = arch;
	state.task_place = &options->task;
	state.preempt_place = &options->preempt;
	state.flags = registers_find(arch->flags);
	if (!state.flags)
		return arch->flags;
	for (unsigned int i = 0; i < STATE_ARGUMENTS; i++) {
		state.argument[i] = registers_find(arch->argument[i]);
		if (!state.argument[i])
			return arch->argument[i];
	}
	missing = find(&options->task, &state.task);
	return missing ? missing : find(&options->preempt, &state.preempt);
}

unsigned int state_look_at_interrupts(struct cpu *cpu, struct record *out)
{
	uint64_t flags;
	bool enabled;

	if (!registers_read(state.flags, &flags))
		return 0;
	enabled = ((flags & state.arch->flag) != 0) != state.arch->flag_masks;
	if (enabled == cpu->interrupts)
		return 0;
	cpu->interrupts = enabled;
	*out = record_make(RECORD_INTERRUPTS, cpus_index(cpu), cpus.at_ns, enabled);
	return 1;
}

/* The upper half of the addresses is the kernel's on every architecture. */
static bool in_kernel(uint64_t address)
{
	return address >> 63;
}

/* On its way in and out of the kernel a CPU still has, or has again, what the program
 * keeps in the same register. */
static bool read_place(const struct place *place, struct qemu_plugin_register *handle,
		       uint64_t *out)
{
	if (!registers_read(handle, out) || !in_kernel(*out))
		return false;
	return !place->in_memory ||
	       registers_read_memory(*out + (uint64_t)place->offset, place->bytes, out);
}

bool state_read_task(uint64_t *out)
{
	return read_place(state.task_place, state.task, out) && in_kernel(*out);
}

bool state_read_count(uint64_t *out)
{
	return state.preempt && read_place(state.preempt_place, state.preempt, out);
}

bool state_read_argument(unsigned int number, uint64_t *out)
{
	return registers_read(state.argument[number], out) && in_kernel(*out);
}

unsigned int state_look_at_kernel(struct cpu *cpu, uint64_t address, struct record *out)
{
	unsigned int changes = 0;
	uint64_t value;

	if (!in_kernel(address))
		return 0;
	if (read_place(state.task_place, state.task, &value) && value != cpu->task) {
		cpu->task = value;
		out[changes++] =
			record_make(RECORD_TASK, cpus_index(cpu), cpus.at_ns, value);
	}
	if (read_place(state.preempt_place, state.preempt, &value) &&
	    (int64_t)value != cpu->preempt) {
		cpu->preempt = (int64_t)value;
		out[changes++] =
			record_make(RECORD_PREEMPT, cpus_index(cpu), cpus.at_ns, value);
	}
	return changes;
}
