// SPDX-License-Identifier: GPL-2.0
/*
 * acq - an imagined acquisition card. Its work is done in interrupts, timers, softirqs
 * and callbacks, one of which `what` chooses; it takes place on the second CPU.
 */
#include <asm/apic.h>
#include <asm/nmi.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/timer.h>

#define TARGET 1
#define WORDS  4096
#define NODES  400

static char *what = "";
module_param(what, charp, 0444);
static unsigned int first_ms = 300;
module_param(first_ms, uint, 0444);

static u32 table[WORDS];
static u32 sink;

/* NMI: the card's overrun line. */
static bool overrun;

static int acq_overrun(unsigned int type, struct pt_regs *regs)
{
	u64 begin;

	if (!READ_ONCE(overrun) || smp_processor_id() != TARGET)
		return NMI_DONE;
	WRITE_ONCE(overrun, false);
	begin = rdtsc();
	while (rdtsc() - begin < 420000)
		sink++;
	return NMI_HANDLED;
}

static void fire_nmi(void)
{
	WRITE_ONCE(overrun, true);
	__apic_send_IPI_mask(cpumask_of(TARGET), NMI_VECTOR);
}

/* A hard timer. */
static struct hrtimer sampler;

static enum hrtimer_restart acq_sample(struct hrtimer *timer)
{
	unsigned int i, round;

	for (round = 0; round < 20; round++)
		for (i = 0; i < WORDS; i++)
			table[i] = table[i] * 31 + i;
	return HRTIMER_NORESTART;
}

static void fire_hrtimer(void)
{
	hrtimer_start(&sampler, ns_to_ktime(150000), HRTIMER_MODE_REL_PINNED_HARD);
}

/* irq_work. */
static void acq_flush_stats(struct irq_work *work)
{
	unsigned int i;

	for (i = 0; i < 90000; i++)
		WRITE_ONCE(sink, sink ^ i);
}

static struct irq_work stats = IRQ_WORK_INIT_HARD(acq_flush_stats);

static void fire_irq_work(void)
{
	irq_work_queue(&stats);
}

/* Three calls, of which the last takes longest. */
static void acq_rewind(void *info)
{
	u64 until = ktime_get_mono_fast_ns() + 150000;

	while (ktime_get_mono_fast_ns() < until)
		cpu_relax();
}

static void acq_refill(void *info)
{
	udelay(140);
}

static void acq_resample(void *info)
{
	unsigned int i, round;

	for (round = 0; round < 22; round++)
		for (i = WORDS; i-- > 0;)
			table[i] = table[i] ^ (table[(i * 7) % WORDS] >> 3);
}

static call_single_data_t calls[3] = {
	CSD_INIT(acq_rewind, NULL),
	CSD_INIT(acq_refill, NULL),
	CSD_INIT(acq_resample, NULL),
};

static void fire_calls(void)
{
	unsigned int i;

	preempt_disable();
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		smp_call_function_single_async(TARGET, &calls[i]);
	preempt_enable();
}

/* A tasklet that turns interrupts off. */
static void acq_drain_mailbox(struct tasklet_struct *unused)
{
	unsigned long flags;
	unsigned int i;

	local_irq_save(flags);
	for (i = 0; i < 100000; i++)
		WRITE_ONCE(table[i % WORDS], i);
	local_irq_restore(flags);
}

static DECLARE_TASKLET(mailbox, acq_drain_mailbox);

static void fire_tasklet(void)
{
	tasklet_schedule(&mailbox);
}

/* A timer of the wheel. */
static void acq_age_entries(struct timer_list *unused)
{
	unsigned int i, round;

	for (round = 0; round < 24; round++)
		for (i = 0; i < WORDS; i++)
			if (table[i] > round)
				table[i] -= round;
			else
				table[i] = ~i;
}

static DEFINE_TIMER(ageing, acq_age_entries);

static void fire_timer(void)
{
	ageing.expires = jiffies + 2;
	add_timer_on(&ageing, TARGET);
}

/* A flood of RCU callbacks. */
struct acq_node {
	struct rcu_head rcu;
	u32 sum;
};

static void acq_free_node(struct rcu_head *head)
{
	struct acq_node *node = container_of(head, struct acq_node, rcu);
	unsigned int i;

	for (i = 0; i < 2500; i++)
		node->sum += table[i % WORDS];
	WRITE_ONCE(sink, node->sum);
	kfree(node);
}

static void fire_rcu(void)
{
	unsigned int i;

	for (i = 0; i < NODES; i++) {
		struct acq_node *node = kzalloc(sizeof(*node), GFP_KERNEL);

		if (node)
			call_rcu(&node->rcu, acq_free_node);
	}
}

static const struct deed {
	const char *name;
	void (*fire)(void);
	unsigned int cpu;
} deeds[] = {
	{ "nmi", fire_nmi, 0 },           { "hrtimer", fire_hrtimer, 1 },
	{ "irq_work", fire_irq_work, 1 }, { "calls", fire_calls, 0 },
	{ "tasklet", fire_tasklet, 1 },   { "timer", fire_timer, 0 },
	{ "rcu", fire_rcu, 1 },
};

static int acq_control(void *data)
{
	const struct deed *deed = data;
	unsigned int i;

	msleep(first_ms);
	for (i = 0; i < 3; i++) {
		deed->fire();
		msleep(60);
	}
	return 0;
}

static int __init acq_init(void)
{
	struct task_struct *control;
	unsigned int i;

	hrtimer_init(&sampler, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	sampler.function = acq_sample;
	for (i = 0; i < ARRAY_SIZE(deeds); i++) {
		if (strcmp(deeds[i].name, what))
			continue;
		if (deeds[i].fire == fire_nmi &&
		    register_nmi_handler(NMI_LOCAL, acq_overrun, 0, "acq"))
			return -EBUSY;
		control = kthread_create(acq_control, (void *)&deeds[i], "acqctl");
		if (IS_ERR(control))
			return PTR_ERR(control);
		kthread_bind(control, deeds[i].cpu);
		wake_up_process(control);
		return 0;
	}
	return -EINVAL;
}
module_init(acq_init);
MODULE_DESCRIPTION("Late wake-ups from interrupts and callbacks");
MODULE_LICENSE("GPL");
