// SPDX-License-Identifier: GPL-2.0
/*
 * culprits - makes wake-ups late on purpose, in ways that are known.
 *
 * Tests insert it on virtual boards: each culprit below is planted once, one after the
 * other, on the CPU that is measured, and the explanation of what it made late has to
 * name it. A culprit of 0 us is not planted. All time is spent with the name of the
 * culprit on the stack.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/version.h>

static unsigned int cpu = 1;
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "CPU that is measured");

static unsigned int other;
module_param(other, uint, 0444);
MODULE_PARM_DESC(other, "CPU that holds the lock, and sends the interrupts");

static unsigned int first_ms = 100;
module_param(first_ms, uint, 0444);
MODULE_PARM_DESC(first_ms, "until the first culprit is planted");

static unsigned int apart_ms = 10;
module_param(apart_ms, uint, 0444);
MODULE_PARM_DESC(apart_ms, "from one culprit to the next");

#define CULPRIT(name, text)                                                            \
	static unsigned int name##_us;                                                 \
	module_param(name##_us, uint, 0444);                                           \
	MODULE_PARM_DESC(name##_us, text ", in us")

CULPRIT(irqs_off, "interrupts off");
CULPRIT(preempt_off, "preemption off");
CULPRIT(lock, "a raw spinlock that another CPU holds");
CULPRIT(interrupt, "the handler of a hard interrupt");
CULPRIT(timer, "the callback of a timer that expires in hard interrupt context");
CULPRIT(softirq, "a tasklet that an interrupt has scheduled");

static struct task_struct *planter;
static struct task_struct *holder;
static struct completion holding;
static struct hrtimer hrtimer;
static DEFINE_RAW_SPINLOCK(contended);

static __always_inline void spend(unsigned int us)
{
	const u64 end = ktime_get_mono_fast_ns() + us * 1000ULL;

	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
}

static noinline void culprit_irqs_off(void)
{
	unsigned long flags;

	local_irq_save(flags);
	spend(irqs_off_us);
	local_irq_restore(flags);
}

static noinline void culprit_preempt_off(void)
{
	preempt_disable();
	spend(preempt_off_us);
	preempt_enable();
}

static noinline void culprit_holds_lock(void)
{
	raw_spin_lock(&contended);
	complete(&holding);
	spend(lock_us);
	raw_spin_unlock(&contended);
}

static int hold(void *unused)
{
	culprit_holds_lock();
	while (!kthread_should_stop())
		msleep(1);
	return 0;
}

static noinline void culprit_waits_for_lock(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&contended, flags);
	raw_spin_unlock_irqrestore(&contended, flags);
}

static void plant_lock(void)
{
	init_completion(&holding);
	holder = kthread_run_on_cpu(hold, NULL, other, "culprit_hold/%u");
	if (IS_ERR(holder))
		return;
	wait_for_completion(&holding);
	culprit_waits_for_lock();
	kthread_stop(holder);
}

static noinline void culprit_interrupt(void *unused)
{
	spend(interrupt_us);
}

static noinline enum hrtimer_restart culprit_timer(struct hrtimer *unused)
{
	spend(timer_us);
	return HRTIMER_NORESTART;
}

static noinline void culprit_softirq(struct tasklet_struct *unused)
{
	spend(softirq_us);
}

static DECLARE_TASKLET(tasklet, culprit_softirq);

static void raise_softirq_here(void *unused)
{
	tasklet_schedule(&tasklet);
}

static void interrupt_from_other_cpu(smp_call_func_t handler)
{
	smp_call_function_single(cpu, handler, NULL, true);
}

static long plant_interrupt(void *unused)
{
	interrupt_from_other_cpu(culprit_interrupt);
	return 0;
}

static long plant_softirq(void *unused)
{
	interrupt_from_other_cpu(raise_softirq_here);
	return 0;
}

static void plant_timer(void)
{
	hrtimer_start(&hrtimer, ns_to_ktime(NSEC_PER_MSEC),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

static int plant(void *unused)
{
	msleep(first_ms);
	if (irqs_off_us)
		culprit_irqs_off();
	msleep(apart_ms);
	if (preempt_off_us)
		culprit_preempt_off();
	msleep(apart_ms);
	if (lock_us)
		plant_lock();
	msleep(apart_ms);
	if (interrupt_us)
		work_on_cpu(other, plant_interrupt, NULL);
	msleep(apart_ms);
	if (timer_us)
		plant_timer();
	msleep(apart_ms);
	if (softirq_us)
		work_on_cpu(other, plant_softirq, NULL);
	while (!kthread_should_stop())
		msleep(apart_ms);
	return 0;
}

static int __init culprits_init(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&hrtimer, culprit_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(&hrtimer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	hrtimer.function = culprit_timer;
#endif
	planter = kthread_run_on_cpu(plant, NULL, cpu, "culprits/%u");
	return PTR_ERR_OR_ZERO(planter);
}

static void __exit culprits_exit(void)
{
	kthread_stop(planter);
	hrtimer_cancel(&hrtimer);
	tasklet_kill(&tasklet);
}

module_init(culprits_init);
module_exit(culprits_exit);
MODULE_DESCRIPTION("Makes wake-ups late on purpose");
MODULE_LICENSE("GPL");
