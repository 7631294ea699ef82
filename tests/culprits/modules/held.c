// SPDX-License-Identifier: GPL-2.0
/*
 * held - the measuring thread waits off its CPU for what another CPU does; a turn for
 * each: a semaphore, a completion, a work item, a wait queue, SRCU, all CPUs called.
 */
#include <linux/processor.h>
#include <linux/bit_spinlock.h>
#include <linux/completion.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/semaphore.h>
#include <linux/smp.h>
#include <linux/srcu.h>
#include <linux/task_work.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

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

static unsigned long every_ms = 24; /* a turn sleeps some ticks itself */
module_param(every_ms, ulong, 0444);
MODULE_PARM_DESC(every_ms, "from one turn to the next");

static char *measured = "rtscope/1";
module_param(measured, charp, 0444);
MODULE_PARM_DESC(measured, "name of the measuring thread");

static struct task_struct *planter;
static struct completion begun;

static struct task_struct *elsewhere(int (*thread)(void *), const char *name)
{
	struct task_struct *task = kthread_create_on_cpu(thread, NULL, other, name);

	if (IS_ERR(task))
		return NULL;
	init_completion(&begun);
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

/* A turn in which the measuring thread is sent to wait for a thread elsewhere. */
static void meet(int (*thread)(void *), const char *name, task_work_func_t errand)
{
	struct task_struct *task = elsewhere(thread, name);

	send_on_errand(errand);
	msleep(4);
	end(task);
}

/* The lock is a bit of a word: a CPU waits for it in a loop, but with preemption. */
static unsigned long bucket;

static noinline void insert_entry(void)
{
	bit_spin_lock(0, &bucket);
	complete(&begun);
	dally(600);
	bit_spin_unlock(0, &bucket);
}

static int inserter(void *unused)
{
	insert_entry();
	return until_stopped();
}

static noinline void look_up_entry(void)
{
	bit_spin_lock(0, &bucket);
	bit_spin_unlock(0, &bucket);
}

static void plant_bit_lock(void)
{
	struct task_struct *task = elsewhere(inserter, "insert/%u");

	look_up_entry();
	end(task);
}

/* A function that all CPUs are asked to call, and awaited. */
static noinline void drain_local(void *unused)
{
	if (raw_smp_processor_id() == other)
		dally(640);
}

static noinline void drain_all(void)
{
	on_each_cpu(drain_local, NULL, true);
}

static void plant_each_cpu(void)
{
	preempt_disable();
	drain_all();
	preempt_enable();
}

/* A counting semaphore. */
static DEFINE_SEMAPHORE(keys, 1);

static noinline void rotate_keys(void)
{
	down(&keys);
	complete(&begun);
	dally(1100);
	up(&keys);
}

static int rotator(void *unused)
{
	rotate_keys();
	return until_stopped();
}

static noinline void use_keys(struct callback_head *unused)
{
	down(&keys);
	up(&keys);
}

static void plant_semaphore(void)
{
	meet(rotator, "rotate/%u", use_keys);
}

/* A completion, which another thread is to signal. */
static struct completion key_ready;

static noinline void derive_key(void)
{
	dally(1200);
	complete(&key_ready);
}

static int deriver(void *unused)
{
	complete(&begun);
	derive_key();
	return until_stopped();
}

static noinline void await_key(struct callback_head *unused)
{
	wait_for_completion(&key_ready);
}

static void plant_completion(void)
{
	init_completion(&key_ready);
	meet(deriver, "derive/%u", await_key);
}

/* A queue, whose condition another thread makes true. */
static DECLARE_WAIT_QUEUE_HEAD(frame_queue);
static bool frame_there;

static noinline void decode_frame(void)
{
	dally(1250);
	WRITE_ONCE(frame_there, true);
	wake_up(&frame_queue);
}

static int decoder(void *unused)
{
	complete(&begun);
	decode_frame();
	return until_stopped();
}

static noinline void await_frame(struct callback_head *unused)
{
	wait_event(frame_queue, READ_ONCE(frame_there));
}

static void plant_wait_queue(void)
{
	frame_there = false;
	meet(decoder, "decode/%u", await_frame);
}

/* A work item that is flushed. */
static noinline void rewrite_journal(struct work_struct *unused)
{
	dally(1300);
	WRITE_ONCE(frame_there, true); /* so that nobody jumps to dally */
}

static DECLARE_WORK(journal_work, rewrite_journal);

static noinline void flush_journal(struct callback_head *unused)
{
	flush_work(&journal_work);
}

static void plant_work(void)
{
	schedule_work_on(other, &journal_work);
	send_on_errand(flush_journal);
	msleep(4);
}

/* A reader of SRCU. */
DEFINE_STATIC_SRCU(rules);

static noinline void match_rules(void)
{
	int index = srcu_read_lock(&rules);

	complete(&begun);
	dally(1400);
	srcu_read_unlock(&rules, index);
}

static int matcher(void *unused)
{
	match_rules();
	return until_stopped();
}

static noinline void replace_rules(struct callback_head *unused)
{
	synchronize_srcu_expedited(&rules);
}

static void plant_srcu(void)
{
	meet(matcher, "match/%u", replace_rules);
}

static const struct turn turns[] = {
	{ "drain_local", plant_each_cpu },
	{ "insert_entry", plant_bit_lock },
	{ "rotate_keys", plant_semaphore },
	{ "derive_key", plant_completion },
	{ "decode_frame", plant_wait_queue },
	{ "rewrite_journal", plant_work },
	/* Last, because a grace period may take longer than a turn. */
	{ "match_rules", plant_srcu },
};

static int plant(void *unused)
{
	take_turns(turns, ARRAY_SIZE(turns), first_ms, every_ms);
	return 0;
}

static int __init held_init(void)
{
	find_task_work();
	planter = kthread_run_on_cpu(plant, NULL, cpu, "held/%u");
	return PTR_ERR_OR_ZERO(planter);
}

module_init(held_init);
MODULE_DESCRIPTION("Makes the measuring thread wait for other CPUs on purpose");
MODULE_LICENSE("GPL");
