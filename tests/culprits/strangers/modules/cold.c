// SPDX-License-Identifier: GPL-2.0
/* cold - a module that does all that it does while it is loaded, with interrupts off. */
#include <linux/irqflags.h>
#include <linux/module.h>

static u32 firmware[1024];

static int __init cold_init(void)
{
	unsigned int i, round;

	local_irq_disable();
	for (round = 0; round < 120; round++)
		for (i = 0; i < ARRAY_SIZE(firmware); i++)
			firmware[i] = firmware[i] * 13 + round;
	local_irq_enable();
	return 0;
}
module_init(cold_init);

static void __exit cold_exit(void)
{
}
module_exit(cold_exit);
MODULE_DESCRIPTION("A long initialisation");
MODULE_LICENSE("GPL");
