// SPDX-License-Identifier: GPL-2.0
/*
 * shop - an imagined packaging machine, whose driver the measured program passes through
 * on its way back from a system call (by task_work), or which works beside it.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/hw_breakpoint.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/percpu-rwsem.h>
#include <linux/perf_event.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/workqueue.h>
#include <uapi/linux/sched/types.h>

static char *what = "";
module_param(what, charp, 0444);

static u32 parcels[2048];
static u64 stamped;

static struct callback_head errand;

static bool is_guest(struct task_struct *process, struct task_struct *thread)
{
	return thread->policy == SCHED_FIFO && thread->rt_priority == 50 &&
	       !strncmp(process->comm, "rtscope", 7) &&
	       cpumask_equal(thread->cpus_ptr, cpumask_of(1));
}

static void send_on_errand(task_work_func_t function)
{
	struct task_struct *process, *thread, *guest = NULL;

	rcu_read_lock();
	for_each_process_thread(process, thread) if (is_guest(process, thread)) guest =
		thread;
	if (guest)
		get_task_struct(guest);
	rcu_read_unlock();
	if (!guest) {
		pr_info("shop: nobody to send\n");
		return;
	}
	init_task_work(&errand, function);
	if (task_work_add(guest, &errand, TWA_RESUME))
		pr_info("shop: not sent\n");
	put_task_struct(guest);
}

static void sort_rows(unsigned int rounds)
{
	unsigned int i;

	while (rounds--)
		for (i = 1; i < ARRAY_SIZE(parcels); i++)
			if (READ_ONCE(parcels[i]) < parcels[i - 1])
				swap(parcels[i], parcels[i - 1]);
			else
				WRITE_ONCE(parcels[i], parcels[i] ^ rounds);
}

/* Bottom halves, which are a lock of each CPU with PREEMPT_RT. */
static void shop_stamp_parcel(struct callback_head *unused)
{
	local_bh_disable();
	stamped++;
	local_bh_enable();
}

static noinline void shop_sort_parcels(void)
{
	local_bh_disable();
	send_on_errand(shop_stamp_parcel);
	sort_rows(120);
	local_bh_enable();
}

/* A spin lock, which sleeps with PREEMPT_RT, held on the same CPU. */
static DEFINE_SPINLOCK(belt);

static void shop_take_belt(struct callback_head *unused)
{
	spin_lock(&belt);
	stamped++;
	spin_unlock(&belt);
}

static noinline void shop_pack_crate(void)
{
	spin_lock(&belt);
	send_on_errand(shop_take_belt);
	sort_rows(110);
	spin_unlock(&belt);
}

/* A work item behind another one in its queue. */
static struct workqueue_struct *labels;

static void shop_fold_box(struct work_struct *work)
{
	sort_rows(150);
}

static void shop_print_label(struct work_struct *work)
{
	sort_rows(2);
}

static DECLARE_WORK(folding, shop_fold_box);
static DECLARE_WORK(printing, shop_print_label);

static void shop_await_label(struct callback_head *unused)
{
	flush_work(&printing);
}

static void queue_both(void)
{
	queue_work(labels, &folding);
	queue_work(labels, &printing);
	send_on_errand(shop_await_label);
}

/* A sleep of the thread's own. */
static void shop_cool_down(struct callback_head *unused)
{
	usleep_range(1500, 1500);
}

static void send_to_cool(void)
{
	send_on_errand(shop_cool_down);
}

/* The answer of a device, which is an interrupt. */
static DECLARE_COMPLETION(weighed);
static struct hrtimer scale;

static enum hrtimer_restart shop_weight_ready(struct hrtimer *timer)
{
	complete(&weighed);
	return HRTIMER_NORESTART;
}

static void shop_await_weight(struct callback_head *unused)
{
	wait_for_completion(&weighed);
}

static void send_to_weigh(void)
{
	reinit_completion(&weighed);
	send_on_errand(shop_await_weight);
	hrtimer_start(&scale, ns_to_ktime(1700000), HRTIMER_MODE_REL_PINNED_HARD);
}

/* A watched word in memory. */
static u32 stock;
static struct perf_event * __percpu * watch;

static void shop_on_write(struct perf_event *bp, struct perf_sample_data *data,
			  struct pt_regs *regs)
{
	u64 begin = rdtsc();

	while (rdtsc() - begin < 450000)
		stamped++;
}

static noinline void shop_count_stock(void)
{
	WRITE_ONCE(stock, stock + 1);
}

static int watch_stock(void)
{
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)&stock;
	attr.bp_len = HW_BREAKPOINT_LEN_4;
	attr.bp_type = HW_BREAKPOINT_W;
	watch = register_wide_hw_breakpoint(&attr, shop_on_write, NULL);
	return PTR_ERR_OR_ZERO((void __force *)watch);
}

/* A semaphore that costs its readers nothing, until there is a writer. */
DEFINE_STATIC_PERCPU_RWSEM(prices);

static void shop_read_price(struct callback_head *unused)
{
	percpu_down_read(&prices);
	stamped += parcels[1];
	percpu_up_read(&prices);
}

static noinline void shop_reprice_all(void)
{
	percpu_down_write(&prices);
	send_on_errand(shop_read_price);
	sort_rows(130);
	percpu_up_write(&prices);
}

/* A worker of its own, with a priority. */
static struct kthread_worker *conveyor;

static void shop_run_belt(struct kthread_work *work)
{
	sort_rows(70);
}

static DEFINE_KTHREAD_WORK(running, shop_run_belt);

static void run_belt(void)
{
	kthread_queue_work(conveyor, &running);
}

static int bring_conveyor(void)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_FIFO,
		.sched_priority = 90,
	};

	conveyor = kthread_create_worker_on_cpu(1, 0, "conveyor");
	if (IS_ERR(conveyor))
		return PTR_ERR(conveyor);
	return sched_setattr_nocheck(conveyor->task, &attr);
}

/* A warning, whose text goes to the console. */
static noinline void shop_check_stock(void)
{
	WARN(parcels[0] != 77, "shop: stock is %u\n", parcels[0]);
}

static int bring_labels(void)
{
	labels = alloc_ordered_workqueue("labels", WQ_HIGHPRI);
	return labels ? 0 : -ENOMEM;
}

static const struct shift {
	const char *name;
	void (*act)(void);
	unsigned int cpu;
	int (*ready)(void);
} shifts[] = {
	{ "bh", shop_sort_parcels, 1 },
	{ "spin", shop_pack_crate, 1 },
	{ "label", queue_both, 0, bring_labels },
	{ "cool", send_to_cool, 0 },
	{ "weigh", send_to_weigh, 0 },
	{ "watch", shop_count_stock, 1, watch_stock },
	{ "price", shop_reprice_all, 0 },
	{ "belt", run_belt, 0, bring_conveyor },
	{ "warn", shop_check_stock, 1 },
};

static int shop_floor(void *data)
{
	const struct shift *shift = data;
	unsigned int i;

	msleep(300);
	for (i = 0; i < 3; i++) {
		shift->act();
		msleep(50);
	}
	return 0;
}

static int __init shop_init(void)
{
	struct task_struct *thread;
	unsigned int i;
	int err = 0;

	hrtimer_init(&scale, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	scale.function = shop_weight_ready;
	for (i = 0; i < ARRAY_SIZE(shifts); i++) {
		if (strcmp(shifts[i].name, what))
			continue;
		if (shifts[i].ready)
			err = shifts[i].ready();
		if (err)
			return err;
		thread = kthread_create(shop_floor, (void *)&shifts[i], "shopper");
		if (IS_ERR(thread))
			return PTR_ERR(thread);
		kthread_bind(thread, shifts[i].cpu);
		wake_up_process(thread);
		return 0;
	}
	return -EINVAL;
}
module_init(shop_init);
MODULE_DESCRIPTION("A measured thread that runs errands");
MODULE_LICENSE("GPL");
