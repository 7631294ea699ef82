// SPDX-License-Identifier: GPL-2.0
/* wrap - a module that takes long to leave, and is gone when the path is read. */
#include <linux/module.h>
#include <linux/preempt.h>

static u32 reels[1024];

static int __init wrap_init(void)
{
	return 0;
}

static void __exit wrap_exit(void)
{
	unsigned int i;

	preempt_disable();
	for (i = 0; i < 260000; i++)
		WRITE_ONCE(reels[i % ARRAY_SIZE(reels)], i);
	preempt_enable();
}
module_init(wrap_init);
module_exit(wrap_exit);
MODULE_DESCRIPTION("A module that leaves late");
MODULE_LICENSE("GPL");
