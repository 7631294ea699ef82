// SPDX-License-Identifier: GPL-2.0
/*
 * gate - an imagined driver that a real-time program passes through on its way back from
 * a system call (by task_work), where it has to wait for somebody on the first CPU.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rtmutex.h>
#include <linux/rwsem.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/seqlock.h>
#include <linux/task_work.h>
#include <linux/uaccess.h>
#include <uapi/linux/sched/types.h>

static char *what = "";
module_param(what, charp, 0444);
static unsigned int first_ms = 300;
module_param(first_ms, uint, 0444);

static u32 slots[1024];
static u64 total;

/* Send the measured thread through a function. */
static struct callback_head visit;

static struct task_struct *find_guest(void)
{
	struct task_struct *process, *thread, *found = NULL;

	rcu_read_lock();
	for_each_process_thread(process, thread)
	{
		if (thread->policy == SCHED_FIFO && thread->rt_priority == 50 &&
		    !strncmp(process->comm, "rtscope", 7) &&
		    cpumask_test_cpu(1, thread->cpus_ptr) &&
		    cpumask_weight(thread->cpus_ptr) == 1)
			found = thread;
	}
	if (found)
		get_task_struct(found);
	rcu_read_unlock();
	return found;
}

static void send_guest(task_work_func_t function)
{
	struct task_struct *guest = find_guest();

	if (!guest) {
		pr_info("gate: nobody to send\n");
		return;
	}
	init_task_work(&visit, function);
	if (task_work_add(guest, &visit, TWA_RESUME))
		pr_info("gate: not sent\n");
	put_task_struct(guest);
}

/* A semaphore for readers and writers. */
static DECLARE_RWSEM(routes);

static void gate_lookup_route(struct callback_head *unused)
{
	down_read(&routes);
	total += slots[3];
	up_read(&routes);
}

static noinline void gate_resize_index(void)
{
	unsigned int i, round;

	down_write(&routes);
	send_guest(gate_lookup_route);
	for (round = 0; round < 200; round++)
		for (i = 0; i < ARRAY_SIZE(slots); i++)
			slots[i] = slots[i] * 5 + round;
	up_write(&routes);
}

/* Three locks with inheritance: c holds C, b holds B and wants C, a holds A, wants B. */
static DEFINE_RT_MUTEX(lock_a);
static DEFINE_RT_MUTEX(lock_b);
static DEFINE_RT_MUTEX(lock_c);
static DECLARE_COMPLETION(go_b);
static DECLARE_COMPLETION(go_a);

static void gate_enter_a(struct callback_head *unused)
{
	rt_mutex_lock(&lock_a);
	total++;
	rt_mutex_unlock(&lock_a);
}

static noinline void gate_crunch_c(void)
{
	unsigned int i, round;

	rt_mutex_lock(&lock_c);
	complete(&go_b);
	for (i = 0; i < 8; i++)
		cond_resched();
	for (round = 0; round < 150; round++)
		for (i = 0; i < ARRAY_SIZE(slots); i++)
			slots[i] ^= slots[i] << 1;
	rt_mutex_unlock(&lock_c);
}

static void gate_pass_b(void)
{
	wait_for_completion(&go_b);
	rt_mutex_lock(&lock_b);
	complete(&go_a);
	rt_mutex_lock(&lock_c);
	rt_mutex_unlock(&lock_c);
	rt_mutex_unlock(&lock_b);
}

static void gate_pass_a(void)
{
	wait_for_completion(&go_a);
	rt_mutex_lock(&lock_a);
	send_guest(gate_enter_a);
	rt_mutex_lock(&lock_b);
	rt_mutex_unlock(&lock_b);
	rt_mutex_unlock(&lock_a);
}

/* A sequence counter, whose writer loses its CPU. */
static seqcount_t samples = SEQCNT_ZERO(samples);
static DECLARE_COMPLETION(go_hog);

static void gate_read_sample(struct callback_head *unused)
{
	unsigned int seq;

	do {
		seq = raw_read_seqcount_begin(&samples);
		total += slots[0];
	} while (read_seqcount_retry(&samples, seq));
}

static noinline void gate_write_sample(void)
{
	unsigned int i;

	raw_write_seqcount_begin(&samples);
	send_guest(gate_read_sample);
	complete(&go_hog);
	for (i = 0; i < 40; i++) {
		slots[i]++;
		cond_resched();
	}
	raw_write_seqcount_end(&samples);
}

static noinline void gate_burn_cycles(void)
{
	unsigned int i, round;

	wait_for_completion(&go_hog);
	for (round = 0; round < 250; round++)
		for (i = 0; i < ARRAY_SIZE(slots); i++)
			WRITE_ONCE(slots[i], i + round);
}

/* A mutex, whose holder loses its CPU to a thread of a priority in between. */
static DEFINE_MUTEX(config);

static void gate_take_config(struct callback_head *unused)
{
	mutex_lock(&config);
	total++;
	mutex_unlock(&config);
}

static noinline void gate_save_config(void)
{
	unsigned int i;

	mutex_lock(&config);
	send_guest(gate_take_config);
	complete(&go_hog);
	for (i = 0; i < 40; i++) {
		slots[i]++;
		cond_resched();
	}
	mutex_unlock(&config);
}

static noinline void gate_mid_burn(void)
{
	u64 until;

	wait_for_completion(&go_hog);
	until = ktime_get_ns() + 2000000;
	while (ktime_get_ns() < until)
		total++;
}

/* A lock that a program takes and gives back. */
static DEFINE_RT_MUTEX(borrowed);

static void gate_borrow(struct callback_head *unused)
{
	rt_mutex_lock(&borrowed);
	total++;
	rt_mutex_unlock(&borrowed);
}

static ssize_t gate_write(struct file *file, const char __user *from, size_t size,
			  loff_t *at)
{
	char word;

	if (!size || copy_from_user(&word, from, 1))
		return -EFAULT;
	if (word == 'L') {
		rt_mutex_lock(&borrowed);
		send_guest(gate_borrow);
	} else {
		rt_mutex_unlock(&borrowed);
	}
	return size;
}

static const struct file_operations gate_fops = {
	.owner = THIS_MODULE,
	.write = gate_write,
};

static struct miscdevice gate_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gate",
	.fops = &gate_fops,
};

static const struct role {
	const char *what;
	const char *name;
	void (*play)(void);
	int priority;
	bool first;
} roles[] = {
	{ "rwsem", "router", gate_resize_index, 0, true },
	{ "chain", "chain_c", gate_crunch_c, 0, true },
	{ "chain", "chain_b", gate_pass_b, 20, false },
	{ "chain", "chain_a", gate_pass_a, 30, false },
	{ "seq", "seqwriter", gate_write_sample, 0, true },
	{ "seq", "seqhog", gate_burn_cycles, 40, false },
	{ "mutex", "inv_low", gate_save_config, 0, true },
	{ "mutex", "inv_mid", gate_mid_burn, 30, false },
};

static int gate_thread(void *data)
{
	const struct role *role = data;
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_FIFO,
		.sched_priority = role->priority,
	};
	unsigned int i;

	if (role->priority)
		sched_setattr_nocheck(current, &attr);
	if (role->first)
		msleep(first_ms);
	for (i = 0; i < 3; i++) {
		role->play();
		if (role->first)
			msleep(50);
	}
	return 0;
}

static int __init gate_init(void)
{
	struct task_struct *thread;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(roles); i++) {
		if (strcmp(roles[i].what, what))
			continue;
		thread = kthread_create(gate_thread, (void *)&roles[i], "%s",
					roles[i].name);
		if (IS_ERR(thread))
			return PTR_ERR(thread);
		kthread_bind(thread, 0);
		wake_up_process(thread);
	}
	return misc_register(&gate_device);
}
module_init(gate_init);
MODULE_DESCRIPTION("A measured thread that waits for others");
MODULE_LICENSE("GPL");
