/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sections.h"

#include "longest.h"
#include "registers.h"
#include "state.h"

/* Of the preemption count, include/linux/preempt.h: hard interrupts and NMIs; softirqs
 * and preemption; and on x86 a bit that is clear if a switch is due. */
#define COUNT_INTERRUPTS UINT64_C(0x00ff0000)
#define COUNT_OFF        UINT64_C(0x0000ffff)
#define COUNT_NOT_DUE    UINT64_C(0x80000000)

struct section_of {
	bool open;
	struct stretch stretch;
};

struct tracked {
	bool known;     /* the preemption count was read once */
	bool measured;  /* by the thread `measuring` */
	bool may_count; /* the block before may have changed the count */
	bool waited;    /* the block before may have slept */
	uint64_t task, measuring, idle;
	uint64_t count;
	bool on;              /* interrupts */
	bool off;             /* preemption */
	uint64_t on_until_ns; /* when each of both was last so */
	uint64_t off_since_ns;
	uint64_t entered_ns, vector; /* the kernel, last, and by what */
	bool interrupted;
	struct stretch interrupt;
	bool scheduling, masked,
		switched; /* in it: interrupts were off; another task */
	struct section_of section[LONGEST_KINDS];
};

static struct {
	const struct arch *arch;
	const struct options *options;
	struct qemu_plugin_register *vector;
	struct tracked cpu[CPUS_MAX];
} sections;

void sections_init(const struct arch *arch, const struct options *options)
{
	sections.arch = arch;
	sections.options = options;
	if (arch->vector)
		sections.vector = registers_find(arch->vector);
}

static unsigned int index_of(const struct tracked *t)
{
	return (unsigned int)(t - sections.cpu);
}

static void open_at(struct tracked *t, enum longest_kind kind, uint64_t at)
{
	t->section[kind] = (struct section_of){ true, { .began_ns = at } };
}

static void close_at(struct tracked *t, enum longest_kind kind, uint64_t at)
{
	struct section_of *s = &t->section[kind];

	if (s->open && t->measured && at > s->stretch.began_ns) {
		s->stretch.ended_ns = at;
		longest_offer(index_of(t), kind, s->stretch);
	}
	s->open = false;
}

static void begin_interrupt(struct tracked *t)
{
	uint64_t at =
		t->entered_ns > t->interrupt.ended_ns ? t->entered_ns : cpus.at_ns;

	/* Only while both are enabled; if that was for no whole block, nobody saw it. */
	if (!t->off)
		close_at(t, LONGEST_POID, at);
	t->interrupted = true;
	t->interrupt = (struct stretch){ .began_ns = at };
}

static void end_interrupt(struct tracked *t)
{
	t->interrupted = false;
	t->interrupt.ended_ns = cpus.at_ns;
	for (unsigned int kind = 0; kind < LONGEST_KINDS; kind++)
		t->section[kind].stretch.interrupted_ns +=
			t->interrupt.ended_ns - t->interrupt.began_ns;
	if (t->measured)
		longest_interrupt(index_of(t), t->vector, t->interrupt);
}

static bool is_due(const struct tracked *t)
{
	uint64_t flags;

	if (sections.arch->count_tells)
		return !(t->count & COUNT_NOT_DUE);
	return registers_read_memory(t->task, sizeof(flags), &flags) &&
	       (flags >> sections.options->due & 1);
}

static void look_outside(struct tracked *t)
{
	bool is_open = t->section[LONGEST_PAIE].open;

	if (t->off || !t->on) {
		if (!t->section[LONGEST_POID].open)
			open_at(t, LONGEST_POID, cpus.at_ns);
		return;
	}
	close_at(t, LONGEST_POID, cpus.at_ns);
	if (!is_due(t))
		t->section[LONGEST_PAIE].open = false;
	else if (!is_open)
		open_at(t, LONGEST_PAIE, cpus.at_ns);
}

static void enter_scheduler(struct tracked *t)
{
	uint64_t at = t->off ? t->off_since_ns : cpus.at_ns;

	close_at(t, LONGEST_POID, at);
	close_at(t, LONGEST_PAIE, at);
	t->section[LONGEST_BACK].open = false;
	if (!t->scheduling)
		open_at(t, LONGEST_PSD, at);
	t->scheduling = true;
	t->masked = t->switched = false;
}

static void leave_scheduler(struct tracked *t)
{
	t->scheduling = false;
	close_at(t, LONGEST_PSD, cpus.at_ns);
	close_at(t, LONGEST_ST, cpus.at_ns);
	if (t->measured && t->switched && t->task == t->measuring)
		open_at(t, LONGEST_BACK, cpus.at_ns);
	look_outside(t);
}

static void look_in_scheduler(struct tracked *t, bool is_another)
{
	t->masked |= !t->on;
	if (is_another) {
		t->switched = true;
		open_at(t, LONGEST_ST, t->on_until_ns);
	}
	if (!t->off && t->masked && t->task != t->idle)
		leave_scheduler(t);
}

/* The idle task disables preemption once and for all, and looks for itself. */
static bool is_off(const struct tracked *t)
{
	return (t->count & COUNT_OFF) > (t->task == t->idle);
}

static void look(struct tracked *t, bool on)
{
	bool was_on = t->on, was_off = t->off, was_interrupted = t->interrupted;
	uint64_t count, task, task_before = t->task;

	t->on = on;
	if (state_read_count(&count) && state_read_task(&task)) {
		t->count = count;
		t->task = task;
		t->known = true;
	}
	if (!t->known)
		return;
	if (t->count & COUNT_INTERRUPTS) {
		if (!was_interrupted)
			begin_interrupt(t);
		return;
	}
	if (was_interrupted)
		end_interrupt(t);
	if (!on && (was_on || was_interrupted))
		t->on_until_ns = cpus.at_ns;
	t->off = is_off(t);
	if (t->off && !was_off)
		t->off_since_ns = cpus.at_ns;
	if (t->scheduling)
		look_in_scheduler(t, t->task != task_before);
	else
		look_outside(t);
}

static void enter_kernel(struct tracked *t, const struct block *block)
{
	t->entered_ns = cpus.at_ns;
	if (!sections.vector || !registers_read(sections.vector, &t->vector))
		t->vector = block->address;
}

static void keep_until_here(struct tracked *t)
{
	close_at(t, LONGEST_BACK, cpus.at_ns);
	longest_keep(index_of(t));
}

void sections_at_block(struct cpu *cpu, const struct block *block)
{
	struct tracked *t = &sections.cpu[cpus_index(cpu)];
	uint64_t task;

	if (__builtin_expect(t->waited, 0)) {
		if (t->section[LONGEST_POID].open && t->task == t->idle)
			open_at(t, LONGEST_POID, cpus.at_ns);
		t->waited = false;
	}
	if (block->look_at_begin && !t->interrupted)
		enter_kernel(t, block);
	if (t->may_count || cpu->interrupts != t->on)
		look(t, cpu->interrupts);
	t->may_count = block->may_count;
	t->waited = block->waits;
	if (block->idles && state_read_task(&task)) {
		t->idle = t->task = task;
		if (t->scheduling)
			leave_scheduler(t);
	}
	if (block->sleeps && t->measured && t->task == t->measuring)
		keep_until_here(t);
	if (block->exits && t->measured && t->task == t->measuring)
		t->measured = false; /* another task may get its place in memory */
	if (block->schedules && t->known && !t->interrupted)
		enter_scheduler(t);
}

void sections_at_mark(const struct cpu *cpu)
{
	struct tracked *t = &sections.cpu[cpus_index(cpu)];

	if (!t->measured)
		longest_begin(index_of(t));
	t->measured = true;
	t->measuring = t->task;
	keep_until_here(t);
}
