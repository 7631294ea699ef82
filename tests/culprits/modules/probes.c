// SPDX-License-Identifier: GPL-2.0
/*
 * probes - what a probe or a tracer adds to the functions that it is attached to; a
 * turn for each. Its handler is called behind a trampoline without a symbol.
 */
#include <linux/fprobe.h>
#include <linux/ftrace.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "dally.h"

static unsigned int cpu = 1;
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "CPU that is measured");

static unsigned int other;
module_param(other, uint, 0444);
MODULE_PARM_DESC(other, "CPU that sends an interrupt");

static unsigned long first_ms = 300;
module_param(first_ms, ulong, 0444);
MODULE_PARM_DESC(first_ms, "until the first turn");

static unsigned long every_ms = 12;
module_param(every_ms, ulong, 0444);
MODULE_PARM_DESC(every_ms, "from one turn to the next");

static struct task_struct *planter;

/* Each handler takes its time once, in its turn. */
static bool due_expiry, due_motor, due_pump, due_return, due_wheel, due_belt;

static bool is_due(bool *due)
{
	return raw_smp_processor_id() == cpu && READ_ONCE(*due) && xchg(due, false);
}

/* What the probes are attached to: short, and with interrupts off. */
static noinline void step_motor(void)
{
	dally(5);
	/* A kernel that may makes a jump of a breakpoint on them. */
	asm volatile("mov %%rax, %%rax; mov %%rax, %%rax; mov %%rax, %%rax\n" ::: "memory");
	dally(5);
}

static noinline void step_pump(void)
{
	dally(6);
	asm volatile("mov %%rax, %%rax; mov %%rax, %%rax; mov %%rax, %%rax\n" ::: "memory");
	dally(6);
}

static noinline void close_valve(void)
{
	dally(7);
	WRITE_ONCE(due_return, READ_ONCE(due_return));
}

static noinline void turn_wheel(void)
{
	dally(8);
	WRITE_ONCE(due_wheel, READ_ONCE(due_wheel));
}

static noinline void move_belt(void)
{
	dally(9);
	WRITE_ONCE(due_belt, READ_ONCE(due_belt));
}

/* At the begin of the callback that wakes the measuring thread: by ftrace. */
static noinline int trace_expiry(struct kprobe *p, struct pt_regs *regs)
{
	if (is_due(&due_expiry))
		dally(600);
	return 0;
}

static struct kprobe at_expiry = {
	.symbol_name = "hrtimer_wakeup",
	.pre_handler = trace_expiry,
};

/* Inside of a function: by a jump. */
static noinline int trace_motor(struct kprobe *p, struct pt_regs *regs)
{
	if (is_due(&due_motor))
		dally(620);
	return 0;
}

static struct kprobe at_motor = { .pre_handler = trace_motor };

/* With a handler behind the instruction it stays a breakpoint. */
static noinline int trace_pump(struct kprobe *p, struct pt_regs *regs)
{
	if (is_due(&due_pump))
		dally(640);
	return 0;
}

static void behind_pump(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe at_pump = {
	.pre_handler = trace_pump,
	.post_handler = behind_pump,
};

/* Where a function returns. */
static noinline int trace_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (is_due(&due_return))
		dally(660);
	return 0;
}

static struct kretprobe at_return = {
	.kp.symbol_name = "close_valve",
	.handler = trace_return,
	.maxactive = 8,
};

/* A callback of ftrace. */
static noinline void count_turns(unsigned long ip, unsigned long parent,
				 struct ftrace_ops *ops, struct ftrace_regs *regs)
{
	if (is_due(&due_wheel))
		dally(680);
}

static struct ftrace_ops counting = { .func = count_turns };

/* fprobe. */
static noinline int watch_belt(struct fprobe *fp, unsigned long ip, unsigned long ret,
			       struct pt_regs *regs, void *data)
{
	if (is_due(&due_belt))
		dally(700);
	return 0;
}

static struct fprobe watching = { .entry_handler = watch_belt };

static void *moves_in(void (*function)(void))
{
	static const u8 moves[] = { 0x48, 0x89, 0xc0, 0x48, 0x89, 0xc0 };
	u8 *code = (u8 *)function;

	for (int i = 0; i < 200; i++)
		if (!memcmp(code + i, moves, sizeof(moves)))
			return code + i;
	return NULL;
}

static void attach(const char *what, int err)
{
	pr_info("probes: %s: %d\n", what, err);
}

static void attach_all(void)
{
	char wheel[] = "turn_wheel";

	at_motor.addr = moves_in(step_motor);
	at_pump.addr = moves_in(step_pump);
	attach("kprobe", register_kprobe(&at_expiry));
	attach("kprobe, by a jump", register_kprobe(&at_motor));
	attach("kprobe, by a breakpoint", register_kprobe(&at_pump));
	attach("kretprobe", register_kretprobe(&at_return));
	attach("filter", ftrace_set_filter(&counting, wheel, strlen(wheel), 1));
	attach("ftrace", register_ftrace_function(&counting));
	attach("fprobe", register_fprobe(&watching, "move_belt", NULL));
}

static void masked(void (*function)(void))
{
	unsigned long flags;

	local_irq_save(flags);
	function();
	local_irq_restore(flags);
}

static void plant_expiry(void)
{
	WRITE_ONCE(due_expiry, true);
}

static void plant_motor(void)
{
	WRITE_ONCE(due_motor, true);
	masked(step_motor);
}

static void plant_pump(void)
{
	WRITE_ONCE(due_pump, true);
	masked(step_pump);
}

static void plant_return(void)
{
	WRITE_ONCE(due_return, true);
	masked(close_valve);
}

static void plant_wheel(void)
{
	WRITE_ONCE(due_wheel, true);
	masked(turn_wheel);
}

static void plant_belt(void)
{
	WRITE_ONCE(due_belt, true);
	masked(move_belt);
}

/* Another delay, while a probe is at the same wake-ups: its callers must be whole. */
static noinline void innocent_bystander(void *unused)
{
	dally(560);
}

static long send_bystander(void *unused)
{
	return smp_call_function_single(cpu, innocent_bystander, NULL, true);
}

static void plant_bystander(void)
{
	work_on_cpu(other, send_bystander, NULL);
}

static const struct turn turns[] = {
	{ "trace_expiry", plant_expiry },
	{ "trace_motor", plant_motor },
	{ "trace_pump", plant_pump },
	{ "trace_return", plant_return },
	{ "count_turns", plant_wheel },
	{ "watch_belt", plant_belt },
	{ "innocent_bystander", plant_bystander },
};

static int plant(void *unused)
{
	take_turns(turns, ARRAY_SIZE(turns), first_ms, every_ms);
	return 0;
}

static int __init probes_init(void)
{
	attach_all();
	planter = kthread_run_on_cpu(plant, NULL, cpu, "probes/%u");
	return PTR_ERR_OR_ZERO(planter);
}

module_init(probes_init);
MODULE_DESCRIPTION("Makes wake-ups late by probes and tracers on purpose");
MODULE_LICENSE("GPL");
