// SPDX-License-Identifier: GPL-2.0
/*
 * near - culprits on the measured CPU, a turn for each.
 *
 * All of them spend their time in helpers that they share with others: in dally of
 * another module, in the kernel's delays, copies and printing. So the function with the
 * time is never the culprit.
 */
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <uapi/linux/sched/types.h>
#ifdef CONFIG_X86
#include <asm/apic.h>
#include <asm/nmi.h>
#endif

#include "dally.h"

static unsigned int cpu = 1;
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "CPU that is measured");

static unsigned int other;
module_param(other, uint, 0444);
MODULE_PARM_DESC(other, "CPU that sends the interrupts");

static unsigned long first_ms = 300;
module_param(first_ms, ulong, 0444);
MODULE_PARM_DESC(first_ms, "until the first turn");

static unsigned long every_ms = 12;
module_param(every_ms, ulong, 0444);
MODULE_PARM_DESC(every_ms, "from one turn to the next");

static struct task_struct *planter;
static DEFINE_RAW_SPINLOCK(fifo_lock);
static char *buffer;
#define BUFFER_BYTES (4 << 20)

static noinline void mask_and_poll(void)
{
	unsigned long flags;

	local_irq_save(flags);
	dally(600);
	local_irq_restore(flags);
}

static noinline void pinned_section(void)
{
	preempt_disable();
	dally(620);
	preempt_enable();
}

/* Its caller jumps to it: of that no frame is left. */
static noinline void drain_fifo(unsigned int us)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&fifo_lock, flags);
	udelay(us);
	raw_spin_unlock_irqrestore(&fifo_lock, flags);
}

static noinline void reset_fifo(void)
{
	drain_fifo(640);
}

static noinline void settle_phy(void)
{
	preempt_disable();
	mdelay(1);
	preempt_enable();
}

static noinline void copy_frame(void)
{
	unsigned long flags;

	local_irq_save(flags);
	memcpy(buffer, buffer + BUFFER_BYTES / 2, BUFFER_BYTES / 2);
	local_irq_restore(flags);
}

static noinline void dump_registers(void)
{
	unsigned long flags;

	local_irq_save(flags);
	for (int i = 0; i < 40; i++)
		printk(KERN_EMERG "near: register %d: %lx\n", i, flags);
	local_irq_restore(flags);
}

static noinline void bottom_halves_off(void)
{
	local_bh_disable();
	dally(660);
	local_bh_enable();
}

/* Nothing is off here: only a kernel that does not preempt its own code is late. */
static noinline void long_walk(void)
{
	dally(680);
}

static noinline void doorbell(void *unused)
{
	dally(500);
}

static long send_doorbell(void *unused)
{
	return smp_call_function_single(cpu, doorbell, NULL, true);
}

static void from_other_cpu(void)
{
	work_on_cpu(other, send_doorbell, NULL);
}

static noinline void refill(struct irq_work *unused)
{
	dally(510);
}

static struct irq_work refill_work = IRQ_WORK_INIT_HARD(refill);

static void queue_refill(void)
{
	irq_work_queue(&refill_work);
}

static struct hrtimer hard_timer, soft_timer;

static noinline enum hrtimer_restart sample_adc(struct hrtimer *unused)
{
	dally(520);
	return HRTIMER_NORESTART;
}

static noinline enum hrtimer_restart blink_led(struct hrtimer *unused)
{
	dally(530);
	return HRTIMER_NORESTART;
}

static void start_hard(void)
{
	hrtimer_start(&hard_timer, ns_to_ktime(NSEC_PER_MSEC),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

static void start_soft(void)
{
	hrtimer_start(&soft_timer, ns_to_ktime(NSEC_PER_MSEC),
		      HRTIMER_MODE_REL_PINNED_SOFT);
}

static noinline void retransmit(struct timer_list *unused)
{
	dally(540);
}

static DEFINE_TIMER(wheel_timer, retransmit);

static void start_wheel(void)
{
	wheel_timer.expires = jiffies + 1;
	add_timer_on(&wheel_timer, cpu);
}

static noinline void receive_burst(struct tasklet_struct *unused)
{
	dally(550);
}

static DECLARE_TASKLET(burst, receive_burst);

static void schedule_burst(void)
{
	tasklet_schedule(&burst);
}

static noinline void scrub_cache(struct work_struct *unused)
{
	unsigned long flags;

	local_irq_save(flags);
	dally(560);
	local_irq_restore(flags);
}

static DECLARE_WORK(scrub, scrub_cache);

static void queue_scrub(void)
{
	schedule_work_on(cpu, &scrub);
}

static struct rcu_head corpse;

static noinline void bury(struct rcu_head *unused)
{
	dally(570);
}

static void free_later(void)
{
	call_rcu(&corpse, bury);
}

#ifdef CONFIG_X86
static bool nmi_wanted;

static noinline int watchdog_nmi(unsigned int type, struct pt_regs *regs)
{
	if (!nmi_wanted || raw_smp_processor_id() != cpu)
		return NMI_DONE;
	nmi_wanted = false;
	dally(580);
	return NMI_HANDLED;
}

static long send_nmi(void *unused)
{
	nmi_wanted = true;
	apic->send_IPI(cpu, NMI_VECTOR);
	return 0;
}

static void nmi_from_other_cpu(void)
{
	work_on_cpu(other, send_nmi, NULL);
}
#endif

/* A thread that is preferred to the measuring one. */
static struct task_struct *started(int (*thread)(void *), const char *name, int priority)
{
	const struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_FIFO,
		.sched_priority = priority,
	};
	struct task_struct *task = kthread_create_on_cpu(thread, NULL, cpu, name);

	if (IS_ERR(task))
		return NULL;
	sched_setattr_nocheck(task, &attr);
	wake_up_process(task);
	return task;
}

static int pump_frames(void *unused)
{
	dally(700);
	while (!kthread_should_stop())
		usleep_range(1000, 1100);
	return 0;
}

/* Ticks of 4 ms would let it take longer than a turn. */
static void start_pump(void)
{
	struct task_struct *task = started(pump_frames, "pump/%u", 95);

	usleep_range(3000, 3100);
	if (task)
		kthread_stop(task);
}

/* The compiler moves what is unlikely, and cold, out of the function. */
static noinline __cold void report_overrun(void)
{
	dally(590);
}

static noinline void check_overrun(unsigned int level)
{
	unsigned long flags;

	local_irq_save(flags);
	if (unlikely(level)) {
		report_overrun();
		WRITE_ONCE(buffer[0], 1);
	}
	local_irq_restore(flags);
}

static void overrun(void)
{
	check_overrun(READ_ONCE(first_ms) > 0);
}

static const struct turn turns[] = {
	{ "mask_and_poll", mask_and_poll },
	{ "pinned_section", pinned_section },
	{ "drain_fifo", reset_fifo },
	{ "settle_phy", settle_phy },
	{ "copy_frame", copy_frame },
	{ "dump_registers", dump_registers },
	{ "bottom_halves_off", bottom_halves_off },
	{ "long_walk", long_walk },
	{ "doorbell", from_other_cpu },
	{ "refill", queue_refill },
	{ "sample_adc", start_hard },
	{ "blink_led", start_soft },
	{ "retransmit", start_wheel },
	{ "receive_burst", schedule_burst },
	{ "scrub_cache", queue_scrub },
	{ "pump_frames", start_pump },
	{ "check_overrun", overrun },
#ifdef CONFIG_X86
	{ "watchdog_nmi", nmi_from_other_cpu },
#endif
	/* Last, because a grace period may take longer than a turn. */
	{ "bury", free_later },
};

static int plant(void *unused)
{
	take_turns(turns, ARRAY_SIZE(turns), first_ms, every_ms);
	return 0;
}

static int __init near_init(void)
{
	buffer = vmalloc(BUFFER_BYTES);
	if (!buffer)
		return -ENOMEM;
	memset(buffer, 1, BUFFER_BYTES);
	hrtimer_init(&hard_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	hard_timer.function = sample_adc;
	hrtimer_init(&soft_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_SOFT);
	soft_timer.function = blink_led;
#ifdef CONFIG_X86
	register_nmi_handler(NMI_LOCAL, watchdog_nmi, 0, "near");
#endif
	planter = kthread_run_on_cpu(plant, NULL, cpu, "near/%u");
	return PTR_ERR_OR_ZERO(planter);
}

module_init(near_init);
MODULE_DESCRIPTION("Makes wake-ups of its own CPU late on purpose");
MODULE_LICENSE("GPL");
