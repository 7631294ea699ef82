// SPDX-License-Identifier: GPL-2.0
/*
 * tricks - waits written by hand, several callbacks in one interrupt, and interrupts
 * of rare kinds; a turn for each.
 */
#include <linux/bitops.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <asm/apic.h>
#include <asm/nmi.h>

#include "dally.h"

static unsigned int cpu = 1;
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "CPU that is measured");

static unsigned int other;
module_param(other, uint, 0444);
MODULE_PARM_DESC(other, "CPU of the holders and senders");

static unsigned long first_ms = 300;
module_param(first_ms, ulong, 0444);
MODULE_PARM_DESC(first_ms, "until the first turn");

static unsigned long every_ms = 12;
module_param(every_ms, ulong, 0444);
MODULE_PARM_DESC(every_ms, "from one turn to the next");

static struct task_struct *planter;
static struct completion begun;

/* Has a thread on the other CPU hold something, until it says that it has it. */
static struct task_struct *elsewhere(void (*hold)(void), int (*thread)(void *))
{
	struct task_struct *task =
		kthread_create_on_cpu(thread, hold, other, "holder/%u");

	if (IS_ERR(task))
		return NULL;
	init_completion(&begun);
	wake_up_process(task);
	wait_for_completion(&begun);
	return task;
}

static int holder(void *hold)
{
	((void (*)(void))hold)();
	while (!kthread_should_stop())
		usleep_range(1000, 1100);
	return 0;
}

static void meet(void (*hold)(void), void (*await)(void))
{
	struct task_struct *task = elsewhere(hold, holder);

	await();
	if (task)
		kthread_stop(task);
}

/* A lock that is tried until it is free. */
static DEFINE_RAW_SPINLOCK(gate);

static noinline void grab_gate(void)
{
	raw_spin_lock(&gate);
	complete(&begun);
	dally(600);
	raw_spin_unlock(&gate);
}

static noinline void step_gate(void)
{
	preempt_disable();
	while (!raw_spin_trylock(&gate))
		cpu_relax();
	raw_spin_unlock(&gate);
	preempt_enable();
}

static void plant_trylock(void)
{
	meet(grab_gate, step_gate);
}

/* The same, with a pause of some time between. */
static noinline void hold_port(void)
{
	raw_spin_lock(&gate);
	complete(&begun);
	dally(620);
	raw_spin_unlock(&gate);
}

static noinline void probe_port(void)
{
	preempt_disable();
	while (!raw_spin_trylock(&gate))
		udelay(1);
	raw_spin_unlock(&gate);
	preempt_enable();
}

static void plant_backoff(void)
{
	meet(hold_port, probe_port);
}

/* A word that is taken by an atomic exchange. */
static atomic_t owner;

static noinline void own_ring(void)
{
	preempt_disable();
	atomic_set(&owner, 1);
	complete(&begun);
	dally(640);
	atomic_set_release(&owner, 0);
	preempt_enable();
}

static noinline void swap_owner(void)
{
	unsigned long flags;

	local_irq_save(flags);
	while (atomic_cmpxchg(&owner, 0, 2) != 0)
		cpu_relax();
	atomic_set(&owner, 0);
	local_irq_restore(flags);
}

static void plant_exchange(void)
{
	meet(own_ring, swap_owner);
}

/* A bit that is claimed, with helpers for the attempt and for the pause. */
static unsigned long lines;

static noinline void flush_lines(void)
{
	preempt_disable();
	set_bit(3, &lines);
	complete(&begun);
	dally(660);
	clear_bit_unlock(3, &lines);
	preempt_enable();
}

static noinline bool try_claim(void)
{
	return !test_and_set_bit_lock(3, &lines);
}

static noinline void relax_a_bit(void)
{
	cpu_relax();
	barrier();
}

static noinline void claim_lines(void)
{
	preempt_disable();
	while (!try_claim())
		relax_a_bit();
	clear_bit_unlock(3, &lines);
	preempt_enable();
}

static void plant_claim(void)
{
	meet(flush_lines, claim_lines);
}

/* A flag that is polled until a deadline, so the loop reads the clock. */
static bool is_ready;

static noinline void train_link(void)
{
	preempt_disable();
	complete(&begun);
	dally(680);
	WRITE_ONCE(is_ready, true);
	preempt_enable();
}

static noinline void poll_link(void)
{
	const u64 until = ktime_get_mono_fast_ns() + 5 * NSEC_PER_MSEC;

	preempt_disable();
	while (!READ_ONCE(is_ready) && ktime_get_mono_fast_ns() < until)
		cpu_relax();
	preempt_enable();
}

static void plant_deadline(void)
{
	WRITE_ONCE(is_ready, false);
	meet(train_link, poll_link);
}

/* Three calls that are queued for one interrupt. */
static noinline void flush_a(void *unused)
{
	dally(140);
}

static noinline void flush_b(void *unused)
{
	dally(300);
}

static noinline void flush_c(void *unused)
{
	dally(170);
}

static call_single_data_t call_a = CSD_INIT(flush_a, NULL);
static call_single_data_t call_b = CSD_INIT(flush_b, NULL);
static call_single_data_t call_c = CSD_INIT(flush_c, NULL);

static long send_three(void *unused)
{
	unsigned long flags;

	local_irq_save(flags);
	smp_call_function_single_async(cpu, &call_a);
	smp_call_function_single_async(cpu, &call_b);
	smp_call_function_single_async(cpu, &call_c);
	local_irq_restore(flags);
	return 0;
}

static void plant_three(void)
{
	work_on_cpu(other, send_three, NULL);
}

/* Two pieces of work in one interrupt: irq_work items. */
static noinline void drain_log(struct irq_work *unused)
{
	dally(330);
}

static noinline void wake_log(struct irq_work *unused)
{
	dally(260);
}

static struct irq_work drain_work = IRQ_WORK_INIT_HARD(drain_log);
static struct irq_work wake_work = IRQ_WORK_INIT_HARD(wake_log);

static void plant_two_items(void)
{
	unsigned long flags;

	local_irq_save(flags);
	irq_work_queue(&drain_work);
	irq_work_queue(&wake_work);
	local_irq_restore(flags);
}

/* Many short interrupts, each of which asks for the next. */
static unsigned int syncs;
static struct irq_work sync_work;

static noinline void sync_counter(struct irq_work *work)
{
	dally(4);
	if (syncs && --syncs)
		irq_work_queue(&sync_work);
}

static void plant_flood(void)
{
	syncs = 140;
	sync_work = IRQ_WORK_INIT_HARD(sync_counter);
	irq_work_queue(&sync_work);
}

/* Interrupts are off in a tasklet, which PREEMPT_RT runs in a thread. */
static noinline void mask_in_tasklet(struct tasklet_struct *unused)
{
	unsigned long flags;

	local_irq_save(flags);
	dally(550);
	local_irq_restore(flags);
}

static DECLARE_TASKLET(masking, mask_in_tasklet);

static void plant_masking(void)
{
	tasklet_schedule(&masking);
}

/* NMIs of an idle CPU: one that outlasts what is recorded before, and two in a row. */
static unsigned int nmi_us, nmis_wanted;

static noinline int long_nmi(unsigned int type, struct pt_regs *regs)
{
	if (!nmis_wanted || raw_smp_processor_id() != cpu)
		return NMI_DONE;
	nmis_wanted--;
	dally(nmi_us);
	return NMI_HANDLED;
}

static long send_long_nmi(void *unused)
{
	nmis_wanted = 1;
	nmi_us = 1500;
	usleep_range(300, 320);
	apic->send_IPI(cpu, NMI_VECTOR);
	return 0;
}

static long send_two_nmis(void *unused)
{
	nmis_wanted = 2;
	nmi_us = 350;
	apic->send_IPI(cpu, NMI_VECTOR);
	udelay(100);
	apic->send_IPI(cpu, NMI_VECTOR);
	return 0;
}

static void plant_long_nmi(void)
{
	work_on_cpu(other, send_long_nmi, NULL);
}

static void plant_two_nmis(void)
{
	work_on_cpu(other, send_two_nmis, NULL);
}

static const struct turn turns[] = {
	{ "grab_gate", plant_trylock },
	{ "hold_port", plant_backoff },
	{ "own_ring", plant_exchange },
	{ "flush_lines", plant_claim },
	{ "train_link", plant_deadline },
	{ "flush_b", plant_three },
	{ "drain_log", plant_two_items },
	{ "sync_counter", plant_flood },
	{ "mask_in_tasklet", plant_masking },
	{ "long_nmi", plant_long_nmi },
	{ "two_nmis", plant_two_nmis },
};

static int plant(void *unused)
{
	take_turns(turns, ARRAY_SIZE(turns), first_ms, every_ms);
	return 0;
}

static int __init tricks_init(void)
{
	register_nmi_handler(NMI_LOCAL, long_nmi, 0, "tricks");
	planter = kthread_run_on_cpu(plant, NULL, cpu, "tricks/%u");
	return PTR_ERR_OR_ZERO(planter);
}

module_init(tricks_init);
MODULE_DESCRIPTION("Makes wake-ups late by waits, queued calls and NMIs on purpose");
MODULE_LICENSE("GPL");
