// SPDX-License-Identifier: GPL-2.0
/*
 * audit - an imagined security module that probes getppid() of the program `audited`
 * before the call (what=before) or after it (what=after).
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

static char *what = "";
module_param(what, charp, 0444);

static u32 rules[512];

static bool is_audited(void)
{
	return !strcmp(current->comm, "audited");
}

static int audit_before_call(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned int i, round;

	if (is_audited())
		for (round = 0; round < 180; round++)
			for (i = 0; i < ARRAY_SIZE(rules); i++)
				rules[i] += round;
	return 0;
}

static int audit_after_call(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	unsigned int i;

	if (is_audited())
		for (i = 0; i < 100000; i++)
			WRITE_ONCE(rules[i % ARRAY_SIZE(rules)], i);
	return 0;
}

static struct kprobe before = {
	.symbol_name = "__x64_sys_getppid",
	.pre_handler = audit_before_call,
};

static struct kretprobe after = {
	.kp.symbol_name = "__x64_sys_getppid",
	.handler = audit_after_call,
	.maxactive = 8,
};

static int __init audit_init(void)
{
	return strcmp(what, "after") ? register_kprobe(&before)
				     : register_kretprobe(&after);
}
module_init(audit_init);
MODULE_DESCRIPTION("Slow probes");
MODULE_LICENSE("GPL");
