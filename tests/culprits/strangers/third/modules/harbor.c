// SPDX-License-Identifier: GPL-2.0
/*
 * harbor - an imagined crane's driver: the measured program comes through it on its way
 * back from a system call (by task_work), or it works on the same CPU.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mmap_lock.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/semaphore.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/timer.h>
#include <linux/tracepoint.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include <linux/bit_spinlock.h>

static char *what = "";
module_param(what, charp, 0444);

static u32 crates[512];
static u64 tide;

/* The measured thread, and its way through the harbor. */
static struct task_struct *vessel;
static struct callback_head passage;

static void find_vessel(void)
{
	struct task_struct *process, *thread;

	rcu_read_lock();
	for_each_process_thread(process, thread)
	{
		if (thread->policy == SCHED_FIFO && thread->rt_priority == 50 &&
		    !strncmp(process->comm, "rtscope", 7) &&
		    cpumask_equal(thread->cpus_ptr, cpumask_of(1)))
			vessel = thread;
	}
	if (vessel)
		get_task_struct(vessel);
	rcu_read_unlock();
	if (!vessel)
		pr_info("harbor: no vessel\n");
}

static void call_vessel(task_work_func_t function)
{
	if (!vessel)
		return;
	init_task_work(&passage, function);
	if (task_work_add(vessel, &passage, TWA_RESUME))
		pr_info("harbor: not called\n");
}

static __always_inline void stack_crates(unsigned int us)
{
	u64 until = rdtsc() + us * 1000ULL;

	while (rdtsc() < until)
		WRITE_ONCE(crates[until % ARRAY_SIZE(crates)], until);
}

/* The memory map of the measured process. */
static void harbor_probe_map(struct callback_head *unused)
{
	mmap_read_lock(current->mm);
	tide++;
	mmap_read_unlock(current->mm);
}

static noinline void harbor_remap(void)
{
	struct mm_struct *mm = vessel ? get_task_mm(vessel) : NULL;

	if (!mm)
		return;
	mmap_write_lock(mm);
	call_vessel(harbor_probe_map);
	stack_crates(1300);
	mmap_write_unlock(mm);
	mmput(mm);
}

/* A lock for readers and a writer, which spins or, with PREEMPT_RT, sleeps. */
static DEFINE_RWLOCK(chart);

static void harbor_read_chart(struct callback_head *unused)
{
	read_lock(&chart);
	tide++;
	read_unlock(&chart);
}

static noinline void harbor_draw_chart(void)
{
	write_lock(&chart);
	call_vessel(harbor_read_chart);
	stack_crates(900);
	write_unlock(&chart);
}

/* A lock of one bit, for which both kernels spin. */
static unsigned long flags_word;

static void harbor_raise_flag(struct callback_head *unused)
{
	bit_spin_lock(3, &flags_word);
	tide++;
	bit_spin_unlock(3, &flags_word);
}

static noinline void harbor_sew_flag(void)
{
	bit_spin_lock(3, &flags_word);
	call_vessel(harbor_raise_flag);
	stack_crates(1000);
	bit_spin_unlock(3, &flags_word);
}

/* A bit on which one sleeps, as pages and inodes have it. */
static unsigned long berth;

static void harbor_take_berth(struct callback_head *unused)
{
	wait_on_bit_lock(&berth, 0, TASK_UNINTERRUPTIBLE);
	tide++;
	clear_and_wake_up_bit(0, &berth);
}

static noinline void harbor_unload_berth(void)
{
	set_bit(0, &berth);
	call_vessel(harbor_take_berth);
	stack_crates(1100);
	clear_and_wake_up_bit(0, &berth);
}

/* A counting semaphore. */
static DEFINE_SEMAPHORE(crane, 1);

static void harbor_ask_crane(struct callback_head *unused)
{
	down(&crane);
	tide++;
	up(&crane);
}

static noinline void harbor_lift_crate(void)
{
	down(&crane);
	call_vessel(harbor_ask_crane);
	stack_crates(1200);
	up(&crane);
}

/* A mutex whose holder sleeps. */
static DEFINE_MUTEX(key);

static void harbor_take_key(struct callback_head *unused)
{
	mutex_lock(&key);
	tide++;
	mutex_unlock(&key);
}

static noinline void harbor_lunch(void)
{
	mutex_lock(&key);
	call_vessel(harbor_take_key);
	usleep_range(1400, 1400);
	mutex_unlock(&key);
}

/* A grace period of RCU in the measured thread's own way. */
static void harbor_retire_buoy(struct callback_head *unused)
{
	synchronize_rcu();
}

static void send_to_retire(void)
{
	call_vessel(harbor_retire_buoy);
}

/* Timers whose functions run on CPU 0 while the measured thread cancels them. */
static struct hrtimer siren;
static struct timer_list lantern;

static void harbor_stop_siren(struct callback_head *unused)
{
	hrtimer_cancel(&siren);
}

static enum hrtimer_restart harbor_sound_siren(struct hrtimer *timer)
{
	call_vessel(harbor_stop_siren);
	stack_crates(800);
	return HRTIMER_NORESTART;
}

static void harbor_stop_lantern(struct callback_head *unused)
{
	timer_delete_sync(&lantern);
}

static void harbor_light_lantern(struct timer_list *timer)
{
	call_vessel(harbor_stop_lantern);
	stack_crates(950);
}

static void start_siren(void)
{
	hrtimer_start(&siren, ns_to_ktime(900000), HRTIMER_MODE_REL_PINNED_HARD);
}

static void start_lantern(void)
{
	mod_timer(&lantern, jiffies + 1);
}

/* A soft timer of high resolution on the measured CPU. */
static struct hrtimer winch;

static enum hrtimer_restart harbor_turn_winch(struct hrtimer *timer)
{
	stack_crates(600);
	return HRTIMER_NORESTART;
}

static void start_winch(void)
{
	hrtimer_start(&winch, ns_to_ktime(700000), HRTIMER_MODE_REL_PINNED_SOFT);
}

/* Work of high priority on the measured CPU. */
static void harbor_sort_mail(struct work_struct *work)
{
	stack_crates(850);
}

static DECLARE_WORK(mail, harbor_sort_mail);

static void send_mail(void)
{
	queue_work_on(1, system_highpri_wq, &mail);
}

/* A call of another CPU that waits for its answer. */
static void harbor_answer_radio(void *unused)
{
	stack_crates(420);
}

static void call_radio(void)
{
	smp_call_function_single(1, harbor_answer_radio, NULL, 1);
}

/* Programs of an observer on the way of the measured thread's wake-up. */
static unsigned int watched;

static bool is_watched(struct task_struct *task)
{
	return task == vessel && watched && !--watched;
}

static void harbor_on_switch(void *data, bool preempt, struct task_struct *prev,
			     struct task_struct *next, unsigned int prev_state)
{
	if (is_watched(next))
		stack_crates(380);
}

static void harbor_on_wakeup(void *data, struct task_struct *task)
{
	if (is_watched(task))
		stack_crates(360);
}

static struct tracepoint *found;

static void match_tracepoint(struct tracepoint *one, void *name)
{
	if (!strcmp(one->name, name))
		found = one;
}

static int watch(char *name, void *function)
{
	for_each_kernel_tracepoint(match_tracepoint, name);
	return found ? tracepoint_probe_register(found, function, NULL) : -ENOENT;
}

static int watch_switches(void)
{
	return watch("sched_switch", harbor_on_switch);
}

static int watch_wakeups(void)
{
	return watch("sched_waking", harbor_on_wakeup);
}

static void look(void)
{
	watched = 40;
}

/* A function that ftrace calls before another one. */
static void harbor_on_entry(unsigned long ip, unsigned long parent,
			    struct ftrace_ops *ops, struct ftrace_regs *regs)
{
	if (raw_smp_processor_id() == 1)
		stack_crates(330);
}

static struct ftrace_ops pilot = { .func = harbor_on_entry };

static noinline int bring_pilot(void)
{
	int err = ftrace_set_filter(&pilot, "__do_sys_getppid", 16, 1);

	return err ?: register_ftrace_function(&pilot);
}

static void nothing(void)
{
}

static const struct duty {
	const char *name;
	void (*act)(void);
	int (*ready)(void);
} duties[] = {
	{ "map", harbor_remap },           { "rwlock", harbor_draw_chart },
	{ "bit", harbor_sew_flag },        { "berth", harbor_unload_berth },
	{ "crane", harbor_lift_crate },    { "lunch", harbor_lunch },
	{ "retire", send_to_retire },      { "siren", start_siren },
	{ "lantern", start_lantern },      { "mail", send_mail },
	{ "radio", call_radio },           { "switch", look, watch_switches },
	{ "wakeup", look, watch_wakeups }, { "pilot", nothing, bring_pilot },
};

static int harbor_master(void *data)
{
	const struct duty *duty = data;
	unsigned int i;

	msleep(300);
	find_vessel();
	for (i = 0; i < 3; i++) {
		duty->act();
		msleep(50);
	}
	return 0;
}

static int winch_master(void *data)
{
	unsigned int i;

	msleep(300);
	for (i = 0; i < 3; i++) {
		start_winch();
		msleep(50);
	}
	return 0;
}

static int start_master(int (*run)(void *), const struct duty *duty, unsigned int cpu)
{
	struct task_struct *thread;

	thread = kthread_create(run, (void *)duty, "harbormaster");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	kthread_bind(thread, cpu);
	wake_up_process(thread);
	return 0;
}

static int __init harbor_init(void)
{
	unsigned int i;
	int err = 0;

	hrtimer_init(&siren, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	siren.function = harbor_sound_siren;
	hrtimer_init(&winch, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_SOFT);
	winch.function = harbor_turn_winch;
	timer_setup(&lantern, harbor_light_lantern, TIMER_PINNED);
	if (!strcmp(what, "winch"))
		return start_master(winch_master, NULL, 1);
	for (i = 0; i < ARRAY_SIZE(duties); i++) {
		if (strcmp(duties[i].name, what))
			continue;
		if (duties[i].ready)
			err = duties[i].ready();
		return err ?: start_master(harbor_master, &duties[i], 0);
	}
	return -EINVAL;
}
module_init(harbor_init);
MODULE_DESCRIPTION("A measured thread that passes a harbor");
MODULE_LICENSE("GPL");
