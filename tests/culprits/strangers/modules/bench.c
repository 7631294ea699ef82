// SPDX-License-Identifier: GPL-2.0
/*
 * bench - an imagined test bench. Two threads, `benchfar` on the first CPU and a worker
 * on the second, do one thing that `what` chooses.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/delay.h>
#include <linux/jump_label.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/stop_machine.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <uapi/linux/sched/types.h>

#define FRAME (1u << 20)
#define CELLS 2048

static char *what = "";
module_param(what, charp, 0444);
static unsigned int first_ms = 300;
module_param(first_ms, uint, 0444);

static DECLARE_COMPLETION(go);
static u32 cells[CELLS];
static u64 total;
static u8 *frame, *copy;

/* A work item with preemption off, which counts down as drivers of old do. */
static void bench_compact_pool(struct work_struct *work)
{
	unsigned int left = 80000;

	preempt_disable();
	while (left--)
		cpu_relax();
	preempt_enable();
}

static DECLARE_WORK(compact, bench_compact_pool);

static void far_work(void)
{
	queue_work_on(1, system_wq, &compact);
}

/* A real-time thread above all others. */
static noinline void bench_pump_stage(void)
{
	u64 until = ktime_get_ns() + 700000;

	while (ktime_get_ns() < until)
		total++;
}

/* Bottom halves off. */
static noinline void bench_walk_neighbours(void)
{
	unsigned int i, round;

	local_bh_disable();
	for (round = 0; round < 50; round++)
		for (i = 1; i < CELLS; i++)
			cells[i] += cells[i - 1] ^ round;
	local_bh_enable();
}

/* A copy below a lock. */
static DEFINE_SPINLOCK(registers);

static noinline void bench_snapshot(void)
{
	unsigned long flags;

	spin_lock_irqsave(&registers, flags);
	memcpy(copy, frame, FRAME);
	spin_unlock_irqrestore(&registers, flags);
}

/* Only migration off. */
static noinline void bench_pinned_scan(void)
{
	unsigned int i, round;

	migrate_disable();
	for (round = 0; round < 60; round++)
		for (i = 0; i < CELLS; i++)
			total += cells[i] & round;
	migrate_enable();
}

/* A lock that is tried again and again. */
static DEFINE_RAW_SPINLOCK(ledger);

static noinline void bench_hold_ledger(void)
{
	unsigned int i;

	raw_spin_lock(&ledger);
	complete(&go);
	for (i = 0; i < 120000; i++)
		WRITE_ONCE(cells[i % CELLS], i);
	raw_spin_unlock(&ledger);
}

static noinline void bench_try_ledger(void)
{
	preempt_disable();
	while (!raw_spin_trylock(&ledger))
		cpu_relax();
	total++;
	raw_spin_unlock(&ledger);
	preempt_enable();
}

/* A flag in memory. */
static int filled;

static noinline void bench_fill_dma(void)
{
	unsigned int i, round;

	preempt_disable();
	complete(&go);
	for (round = 0; round < 50; round++)
		for (i = 0; i < CELLS; i++)
			cells[i] = i * round;
	smp_store_release(&filled, 1);
	preempt_enable();
}

static noinline void bench_await_flag(void)
{
	preempt_disable();
	while (!smp_load_acquire(&filled))
		cpu_relax();
	WRITE_ONCE(filled, 0);
	preempt_enable();
}

/* stop_machine, with the work on the other CPU. */
static int bench_recalc_tables(void *unused)
{
	unsigned int i;

	for (i = 0; i < 130000; i++)
		WRITE_ONCE(cells[i % CELLS], ~i);
	return 0;
}

static void far_stop(void)
{
	stop_machine(bench_recalc_tables, NULL, cpumask_of(0));
}

/* A branch that is patched while another CPU has its interrupts off. */
static DEFINE_STATIC_KEY_FALSE(verbose);

static noinline void bench_quiesce_bus(void)
{
	unsigned int i;

	local_irq_disable();
	complete(&go);
	for (i = 0; i < 140000; i++)
		WRITE_ONCE(cells[i % CELLS], i ^ 5);
	local_irq_enable();
}

static noinline void bench_toggle_trace(void)
{
	if (static_branch_unlikely(&verbose))
		static_branch_disable(&verbose);
	else
		static_branch_enable(&verbose);
}

/* A CPU that goes, with a card that must be told. */
static int bench_card_dying(unsigned int cpu)
{
	mdelay(2);
	return 0;
}

static void far_unplug(void)
{
	remove_cpu(1);
	add_cpu(1);
}

static const struct deed {
	const char *name;
	void (*far)(void);
	void (*near)(void);
	int priority;        /* of the worker */
	void (*ready)(void); /* before the measurement */
} deeds[] = {
	{ "work", far_work, NULL, 0 },
	{ "stage", NULL, bench_pump_stage, 99 },
	{ "bh", NULL, bench_walk_neighbours, 0 },
	{ "copy", NULL, bench_snapshot, 0 },
	{ "migrate", NULL, bench_pinned_scan, 0 },
	{ "trylock", bench_hold_ledger, bench_try_ledger, 0 },
	{ "flag", bench_fill_dma, bench_await_flag, 0 },
	{ "stop", far_stop, NULL, 0 },
	{ "patch", bench_quiesce_bus, bench_toggle_trace, 0 },
	/* The first time, the pages that the boot freed there are drained for longer. */
	{ "unplug", far_unplug, NULL, 0, far_unplug },
};

static int bench_far(void *data)
{
	const struct deed *deed = data;
	unsigned int i;

	if (deed->ready)
		deed->ready();
	msleep(first_ms);
	for (i = 0; i < 3; i++) {
		if (deed->far)
			deed->far();
		else
			complete(&go);
		msleep(50);
	}
	return 0;
}

static int bench_near(void *data)
{
	const struct deed *deed = data;
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_FIFO,
		.sched_priority = deed->priority,
	};
	unsigned int i;

	if (deed->priority)
		sched_setattr_nocheck(current, &attr);
	for (i = 0; i < 3; i++) {
		wait_for_completion(&go);
		deed->near();
	}
	return 0;
}

static int begin(int (*run)(void *), const struct deed *deed, unsigned int cpu,
		 const char *name)
{
	struct task_struct *thread = kthread_create(run, (void *)deed, "%s", name);

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	kthread_bind(thread, cpu);
	wake_up_process(thread);
	return 0;
}

static int __init bench_init(void)
{
	unsigned int i;
	int err;

	frame = vzalloc(FRAME);
	copy = vzalloc(FRAME);
	if (!frame || !copy)
		return -ENOMEM;
	memset(frame, 1, FRAME);
	memset(copy, 2, FRAME);
	for (i = 0; i < ARRAY_SIZE(deeds); i++) {
		if (strcmp(deeds[i].name, what))
			continue;
		if (deeds[i].far == far_unplug) {
			err = cpuhp_setup_state_nocalls(CPUHP_AP_ARM_CORESIGHT_STARTING,
							"bench:dying", NULL,
							bench_card_dying);
			if (err < 0)
				return err;
		}
		err = deeds[i].near ? begin(bench_near, &deeds[i], 1,
					    deeds[i].priority ? "stage99" : "benchnear")
				    : 0;
		return err ?: begin(bench_far, &deeds[i], 0, "benchfar");
	}
	return -EINVAL;
}
module_init(bench_init);
MODULE_DESCRIPTION("Late wake-ups from threads");
MODULE_LICENSE("GPL");
