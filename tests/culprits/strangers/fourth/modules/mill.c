// SPDX-License-Identifier: GPL-2.0
/*
 * mill - a driver with faults: 0.3 s after it is inserted, its thread on CPU 1 meets one of
 * them three times, or once if that ends the thread.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/refcount.h>

static char *what = "";
module_param(what, charp, 0444);

static int *grain;
static refcount_t debt;

static noinline void mill_grind_nothing(void)
{
	WRITE_ONCE(grain[2], 1);
}

/* The kernel warns of it once in a boot. */
static noinline void mill_settle_debt(void)
{
	refcount_set(&debt, 0);
	if (refcount_dec_and_test(&debt))
		pr_info("mill: settled\n");
}

static noinline void mill_ask_why(void)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		dump_stack();
}

static const struct fault {
	const char *name;
	void (*meet)(void);
} faults[] = {
	{ "oops", mill_grind_nothing },
	{ "count", mill_settle_debt },
	{ "stack", mill_ask_why },
};

static int mill_work(void *data)
{
	const struct fault *fault = data;
	unsigned int i;

	msleep(300);
	for (i = 0; i < 3; i++) {
		preempt_disable();
		fault->meet();
		preempt_enable();
		msleep(50);
	}
	return 0;
}

static int __init mill_init(void)
{
	struct task_struct *thread;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		if (strcmp(faults[i].name, what))
			continue;
		thread = kthread_create(mill_work, (void *)&faults[i], "miller");
		if (IS_ERR(thread))
			return PTR_ERR(thread);
		kthread_bind(thread, 1);
		wake_up_process(thread);
		return 0;
	}
	return -EINVAL;
}
module_init(mill_init);
MODULE_DESCRIPTION("A driver that meets faults");
MODULE_LICENSE("GPL");
