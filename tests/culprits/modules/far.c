// SPDX-License-Identifier: GPL-2.0
/*
 * far - culprits on another CPU, for which the measured one waits; a turn for each.
 *
 * The measured CPU, or the measuring thread itself, wants a lock, an answer or a value.
 * Why it comes late is found in what another CPU executes meanwhile.
 */
#include <linux/interrupt.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/rtmutex.h>
#include <linux/rwsem.h>
#include <linux/sched/signal.h>
#include <linux/seqlock.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/stop_machine.h>
#include <linux/task_work.h>
#include <linux/vmalloc.h>
#include <uapi/linux/sched/types.h>

#include "dally.h"

static unsigned int cpu = 1;
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "CPU that is measured");

static unsigned int other;
module_param(other, uint, 0444);
MODULE_PARM_DESC(other, "CPU of the culprits");

static unsigned long first_ms = 300;
module_param(first_ms, ulong, 0444);
MODULE_PARM_DESC(first_ms, "until the first turn");

static unsigned long every_ms = 12;
module_param(every_ms, ulong, 0444);
MODULE_PARM_DESC(every_ms, "from one turn to the next");

static char *measured = "rtscope/1";
module_param(measured, charp, 0444);
MODULE_PARM_DESC(measured, "name of the measuring thread");

static struct task_struct *planter;
static struct completion begun;

/* Has a thread of its own on the other CPU do something, until it says that it began. */
static struct task_struct *elsewhere(int (*thread)(void *), const char *name,
				     int priority)
{
	const struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = priority ? SCHED_FIFO : SCHED_NORMAL,
		.sched_priority = priority,
	};
	struct task_struct *task = kthread_create_on_cpu(thread, NULL, other, name);

	if (IS_ERR(task))
		return NULL;
	init_completion(&begun);
	sched_setattr_nocheck(task, &attr);
	wake_up_process(task);
	wait_for_completion(&begun);
	return task;
}

static int until_stopped(void)
{
	while (!kthread_should_stop())
		usleep_range(1000, 1100);
	return 0;
}

static void end(struct task_struct *task)
{
	if (task)
		kthread_stop(task);
}

/* A spin lock, held by a thread. */
static DEFINE_RAW_SPINLOCK(bus_lock);

static noinline void scan_bus(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&bus_lock, flags);
	complete(&begun);
	dally(600);
	raw_spin_unlock_irqrestore(&bus_lock, flags);
}

static int scanner(void *unused)
{
	scan_bus();
	return until_stopped();
}

static noinline void use_bus(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&bus_lock, flags);
	raw_spin_unlock_irqrestore(&bus_lock, flags);
}

static void plant_spin(void)
{
	struct task_struct *task = elsewhere(scanner, "scan/%u", 0);

	use_bus();
	end(task);
}

/* The same lock, held by the callback of a timer. */
static struct hrtimer bus_timer;

static noinline enum hrtimer_restart reset_bus(struct hrtimer *unused)
{
	raw_spin_lock(&bus_lock);
	complete(&begun);
	udelay(620);
	raw_spin_unlock(&bus_lock);
	return HRTIMER_NORESTART;
}

static long start_bus_timer(void *unused)
{
	hrtimer_start(&bus_timer, ns_to_ktime(NSEC_PER_MSEC / 2),
		      HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

static void plant_spin_in_timer(void)
{
	init_completion(&begun);
	work_on_cpu(other, start_bus_timer, NULL);
	wait_for_completion(&begun);
	use_bus();
}

/* A lock of readers and writers, which spins on kernels without PREEMPT_RT. */
static DEFINE_RWLOCK(table_lock);

static noinline void rebuild_table(void)
{
	write_lock(&table_lock);
	complete(&begun);
	dally(640);
	write_unlock(&table_lock);
}

static int rebuilder(void *unused)
{
	rebuild_table();
	return until_stopped();
}

static noinline void read_table(void)
{
	read_lock(&table_lock);
	read_unlock(&table_lock);
}

static void plant_rwlock(void)
{
	struct task_struct *task = elsewhere(rebuilder, "rebuild/%u", 0);

	read_table();
	end(task);
}

/* A sequence counter whose writer takes its time. */
static seqcount_t clock_seq = SEQCNT_ZERO(clock_seq);
static u64 clock_value;

static noinline void slew_clock(void)
{
	preempt_disable();
	raw_write_seqcount_begin(&clock_seq);
	complete(&begun);
	dally(660);
	clock_value++;
	raw_write_seqcount_end(&clock_seq);
	preempt_enable();
}

static int slewer(void *unused)
{
	slew_clock();
	return until_stopped();
}

static noinline u64 read_clock(void)
{
	unsigned int seq;
	u64 value;

	preempt_disable();
	do {
		seq = raw_read_seqcount_begin(&clock_seq);
		value = READ_ONCE(clock_value);
	} while (read_seqcount_retry(&clock_seq, seq));
	preempt_enable();
	return value;
}

static void plant_seqcount(void)
{
	struct task_struct *task = elsewhere(slewer, "slew/%u", 12);

	read_clock();
	end(task);
}

/* Every CPU is stopped for what one of them does. */
static noinline int swap_tables(void *unused)
{
	dally(680);
	return 0;
}

static int swapper(void *unused)
{
	complete(&begun);
	stop_machine(swap_tables, NULL, cpumask_of(other));
	return until_stopped();
}

static void plant_stop_machine(void)
{
	struct task_struct *task = elsewhere(swapper, "swap/%u", 0);

	msleep(3);
	end(task);
}

/* A function that another CPU is asked to call, and awaited. */
static noinline void invalidate_range(void *unused)
{
	dally(700);
}

static noinline void invalidate_everywhere(void)
{
	preempt_disable();
	smp_call_function_single(other, invalidate_range, NULL, true);
	preempt_enable();
}

static void plant_call(void)
{
	invalidate_everywhere();
}

/* The other CPU has interrupts off, while this one has TLBs flushed everywhere. */
static noinline void program_flash(void)
{
	unsigned long flags;

	local_irq_save(flags);
	complete(&begun);
	mdelay(1);
	local_irq_restore(flags);
}

static int programmer(void *unused)
{
	program_flash();
	return until_stopped();
}

static void answered(void *unused)
{
}

static noinline void retire_mapping(void)
{
	smp_call_function_many(cpu_online_mask, answered, NULL, true);
}

static void plant_broadcast(void)
{
	struct task_struct *task = elsewhere(programmer, "flash/%u", 0);

	preempt_disable();
	retire_mapping();
	preempt_enable();
	end(task);
}

/* A word of memory that another CPU writes when it is done. */
static u32 mailbox;

static noinline void prepare_reply(void)
{
	dally(720);
	smp_store_release(&mailbox, 1);
}

static int replier(void *unused)
{
	complete(&begun);
	prepare_reply();
	return until_stopped();
}

static noinline void await_reply(void)
{
	preempt_disable();
	while (!smp_load_acquire(&mailbox))
		cpu_relax();
	preempt_enable();
}

static void plant_mailbox(void)
{
	struct task_struct *task;

	WRITE_ONCE(mailbox, 0);
	task = elsewhere(replier, "reply/%u", 0);
	await_reply();
	end(task);
}

/* What the measuring thread itself does on its way back to its program. */
static struct callback_head errand;
static int (*add_task_work)(struct task_struct *, struct callback_head *,
			    enum task_work_notify_mode);

static void find_task_work(void)
{
	struct kprobe probe = { .symbol_name = "task_work_add" };

	if (register_kprobe(&probe))
		return;
	add_task_work = (void *)probe.addr;
	unregister_kprobe(&probe);
}

static void send_on_errand(task_work_func_t what)
{
	struct task_struct *process, *thread;

	if (!add_task_work)
		return;
	rcu_read_lock();
	for_each_process_thread(process, thread) {
		if (strcmp(thread->comm, measured))
			continue;
		init_task_work(&errand, what);
		add_task_work(thread, &errand, TWA_RESUME);
		break;
	}
	rcu_read_unlock();
}

/* A mutex, whose holder is busy. */
static DEFINE_MUTEX(config_lock);

static noinline void write_config(void)
{
	mutex_lock(&config_lock);
	complete(&begun);
	dally(1100);
	mutex_unlock(&config_lock);
}

static int configurer(void *unused)
{
	write_config();
	return until_stopped();
}

static noinline void read_config(struct callback_head *unused)
{
	mutex_lock(&config_lock);
	mutex_unlock(&config_lock);
}

static void plant_mutex(void)
{
	struct task_struct *task = elsewhere(configurer, "config/%u", 0);

	send_on_errand(read_config);
	msleep(4);
	end(task);
}

/* A chain of rt_mutexes: the holder of the first waits for the second. */
static DEFINE_RT_MUTEX(outer_lock);
static DEFINE_RT_MUTEX(inner_lock);

static noinline void compact_log(void)
{
	rt_mutex_lock(&inner_lock);
	complete(&begun);
	for (int i = 0; i < 20; i++) {
		dally(100);
		cond_resched(); /* or the other could not even try */
	}
	rt_mutex_unlock(&inner_lock);
}

static int compactor(void *unused)
{
	compact_log();
	return until_stopped();
}

static noinline void append_log(void)
{
	rt_mutex_lock(&outer_lock);
	complete(&begun);
	rt_mutex_lock(&inner_lock);
	rt_mutex_unlock(&inner_lock);
	rt_mutex_unlock(&outer_lock);
}

static int appender(void *unused)
{
	append_log();
	return until_stopped();
}

static noinline void sync_log(struct callback_head *unused)
{
	rt_mutex_lock(&outer_lock);
	rt_mutex_unlock(&outer_lock);
}

static void plant_chain(void)
{
	struct task_struct *inner = elsewhere(compactor, "compact/%u", 0);
	struct task_struct *outer = elsewhere(appender, "append/%u", 30);

	send_on_errand(sync_log);
	msleep(4);
	end(outer);
	end(inner);
}

/* A reader of RCU that ends late, and the measuring thread awaits a grace period. */
static noinline void traverse_routes(void)
{
	rcu_read_lock();
	complete(&begun);
	dally(1500);
	rcu_read_unlock();
}

static int router(void *unused)
{
	traverse_routes();
	return until_stopped();
}

static noinline void replace_route(struct callback_head *unused)
{
	synchronize_rcu_expedited();
}

static void plant_grace_period(void)
{
	struct task_struct *task = elsewhere(router, "route/%u", 0);

	send_on_errand(replace_route);
	msleep(5);
	end(task);
}

/* A semaphore of readers and writers. */
static DECLARE_RWSEM(tree_sem);

static noinline void prune_tree(void)
{
	down_write(&tree_sem);
	complete(&begun);
	dally(1200);
	up_write(&tree_sem);
}

static int pruner(void *unused)
{
	prune_tree();
	return until_stopped();
}

static noinline void walk_tree(struct callback_head *unused)
{
	down_read(&tree_sem);
	up_read(&tree_sem);
}

static void plant_rwsem(void)
{
	struct task_struct *task = elsewhere(pruner, "prune/%u", 0);

	send_on_errand(walk_tree);
	msleep(4);
	end(task);
}

static const struct turn turns[] = {
	{ "scan_bus", plant_spin },
	{ "reset_bus", plant_spin_in_timer },
	{ "rebuild_table", plant_rwlock },
	{ "slew_clock", plant_seqcount },
	{ "swap_tables", plant_stop_machine },
	{ "invalidate_range", plant_call },
	{ "program_flash", plant_broadcast },
	{ "prepare_reply", plant_mailbox },
	{ "write_config", plant_mutex },
	{ "compact_log", plant_chain },
	{ "prune_tree", plant_rwsem },
	/* Last, because a grace period may take longer than a turn. */
	{ "traverse_routes", plant_grace_period },
};

static int plant(void *unused)
{
	take_turns(turns, ARRAY_SIZE(turns), first_ms, every_ms);
	return 0;
}

static int __init far_init(void)
{
	find_task_work();
	hrtimer_init(&bus_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	bus_timer.function = reset_bus;
	planter = kthread_run_on_cpu(plant, NULL, cpu, "far/%u");
	return PTR_ERR_OR_ZERO(planter);
}

module_init(far_init);
MODULE_DESCRIPTION("Makes wake-ups of another CPU late on purpose");
MODULE_LICENSE("GPL");
