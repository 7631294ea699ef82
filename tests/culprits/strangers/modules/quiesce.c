// SPDX-License-Identifier: GPL-2.0
/* quiesce - a device; who writes to it has its CPU to itself for half a millisecond. */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/irqflags.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

static noinline void quiesce_window(void)
{
	unsigned int i;

	local_irq_disable();
	for (i = 0; i < 60; i++)
		udelay(10);
	local_irq_enable();
}

static ssize_t quiesce_write(struct file *file, const char __user *from, size_t size,
			     loff_t *at)
{
	quiesce_window();
	return size;
}

static const struct file_operations quiesce_fops = {
	.owner = THIS_MODULE,
	.write = quiesce_write,
};

static struct miscdevice quiesce_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "quiesce",
	.fops = &quiesce_fops,
};
module_misc_device(quiesce_device);
MODULE_DESCRIPTION("Interrupts off in a program's own call");
MODULE_LICENSE("GPL");
