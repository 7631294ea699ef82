// SPDX-License-Identifier: GPL-2.0
/*
 * styles - culprits on the measured CPU in the ways that drivers are written, a turn
 * for each: operations in a table, helpers that open and close a section, recursion,
 * library functions, callbacks of other subsystems, threads of other policies.
 */
#include <linux/crc32.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/stop_machine.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <uapi/linux/sched/types.h>

#include "dally.h"

static unsigned int cpu = 1;
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "CPU that is measured");

static unsigned int other;
module_param(other, uint, 0444);
MODULE_PARM_DESC(other, "CPU that sends the interrupts");

static unsigned long first_ms = 300;
module_param(first_ms, ulong, 0444);
MODULE_PARM_DESC(first_ms, "until the first turn");

static unsigned long every_ms = 12;
module_param(every_ms, ulong, 0444);
MODULE_PARM_DESC(every_ms, "from one turn to the next");

static struct task_struct *planter;
static u8 *buffer;
#define BUFFER_BYTES (4 << 20)

/* A pair of helpers opens and closes the section. */
static unsigned long quiet_flags;

static noinline void enter_quiet(void)
{
	local_irq_save(quiet_flags);
}

static noinline void leave_quiet(void)
{
	local_irq_restore(quiet_flags);
}

static noinline void calibrate_sensor(void)
{
	enter_quiet();
	dally(600);
	leave_quiet();
}

/* It is called through a table of operations, under a lock that its caller holds. */
struct codec_ops {
	int (*parse)(const void *frame, unsigned int bytes);
};

static noinline int parse_frame(const void *frame, unsigned int bytes)
{
	dally(610);
	return bytes + *(const u8 *)frame;
}

static const struct codec_ops codec = { .parse = parse_frame };
static const struct codec_ops *volatile in_use = &codec;
static DEFINE_RAW_SPINLOCK(codec_lock);
static int parsed;

static noinline void take_frame(void)
{
	raw_spin_lock_irq(&codec_lock);
	parsed = in_use->parse(buffer, 64);
	parsed++;
	raw_spin_unlock_irq(&codec_lock);
}

/* It calls itself: each call of it has a little of the time by itself. */
static noinline int walk_nodes(unsigned int depth)
{
	int found = 0;

	preempt_disable();
	dally(20);
	if (depth)
		found = walk_nodes(depth - 1);
	preempt_enable();
	return found + 1;
}

static void balance_tree(void)
{
	WRITE_ONCE(parsed, walk_nodes(30));
}

/* The time is spent in functions of a library. */
static noinline void sign_image(void)
{
	unsigned long flags;

	local_irq_save(flags);
	WRITE_ONCE(parsed, crc32_le(~0, buffer, 1 << 20));
	local_irq_restore(flags);
}

static noinline void wipe_frames(void)
{
	preempt_disable();
	memset(buffer, 0, BUFFER_BYTES);
	WRITE_ONCE(buffer[0], 1);
	preempt_enable();
}

/* Many short sections follow each other, without a gap in which a task could run. */
static DEFINE_PER_CPU(unsigned long, tally);

static noinline void count_pages(void)
{
	preempt_disable();
	for (int i = 0; i < 60; i++) {
		this_cpu_add(tally, i);
		dally(10);
	}
	preempt_enable();
}

/* The handler of an interrupt line, with the kernel's whole way to it. */
static int line = -1;

static noinline irqreturn_t serve_uart(int irq, void *unused)
{
	dally(500);
	return IRQ_HANDLED;
}

static void raise_line(void *unused)
{
	generic_handle_irq(line);
}

static long send_line(void *unused)
{
	return smp_call_function_single(cpu, raise_line, NULL, true);
}

static void line_from_other_cpu(void)
{
	if (line >= 0)
		work_on_cpu(other, send_line, NULL);
}

static void add_line(void)
{
	line = irq_alloc_desc(0);
	if (line < 0)
		return;
	irq_set_chip_and_handler(line, &dummy_irq_chip, handle_simple_irq);
	irq_set_status_flags(line, IRQ_NOREQUEST);
	irq_clear_status_flags(line, IRQ_NOREQUEST | IRQ_NOPROBE);
	if (request_irq(line, serve_uart, IRQF_NO_THREAD, "uart", &line))
		line = -1;
}

/* A function that the kernel stops this CPU for. */
static noinline int patch_text(void *unused)
{
	dally(630);
	return 0;
}

static int patcher(void *unused)
{
	stop_machine(patch_text, NULL, cpumask_of(cpu));
	while (!kthread_should_stop())
		usleep_range(1000, 1100);
	return 0;
}

static void stop_and_patch(void)
{
	struct task_struct *task =
		kthread_run_on_cpu(patcher, NULL, other, "patch/%u");

	msleep(3);
	if (!IS_ERR(task))
		kthread_stop(task);
}

/* An interrupt comes while a softirq is at work: the time is the interrupt's. */
static noinline void snoop_bus(void *unused)
{
	dally(450);
}

static long send_snoop(void *unused)
{
	return smp_call_function_single(cpu, snoop_bus, NULL, true);
}

static noinline void idle_burst(struct tasklet_struct *unused)
{
	for (int i = 0; i < 30; i++)
		dally(2);
}

static DECLARE_TASKLET(burst, idle_burst);

static void burst_and_snoop(void)
{
	tasklet_schedule(&burst);
	work_on_cpu(other, send_snoop, NULL);
}

/* The poll function of a network device. */
static struct net_device *link;
static struct napi_struct napi;

static noinline int poll_ring(struct napi_struct *mine, int budget)
{
	dally(560);
	napi_complete_done(mine, 0);
	return 0;
}

static void add_link(void)
{
	link = alloc_netdev_dummy(0);
	if (!link)
		return;
	netif_napi_add(link, &napi, poll_ring);
	napi_enable(&napi);
}

static void schedule_napi(void)
{
	if (!link)
		return;
	local_bh_disable();
	napi_schedule(&napi);
	local_bh_enable();
}

/* Threads that are preferred to the measuring one, or no less than it. */
static int busy_for_a_while(void *unused)
{
	dally(700);
	while (!kthread_should_stop())
		usleep_range(1000, 1100);
	return 0;
}

static void start_rival(const char *name, const struct sched_attr *attr)
{
	struct task_struct *task =
		kthread_create_on_cpu(busy_for_a_while, NULL, cpu, name);

	if (IS_ERR(task))
		return;
	sched_setattr_nocheck(task, attr);
	wake_up_process(task);
	msleep(3);
	kthread_stop(task);
}

static void start_peer(void)
{
	const struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_FIFO,
		.sched_priority = 50, /* that of the measuring thread */
	};

	start_rival("peer/%u", &attr);
}

static void start_round_robin(void)
{
	const struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_RR,
		.sched_priority = 60,
	};

	start_rival("robin/%u", &attr);
}

static const struct turn turns[] = {
	{ "calibrate_sensor", calibrate_sensor },
	{ "parse_frame", take_frame },
	{ "walk_nodes", balance_tree },
	{ "sign_image", sign_image },
	{ "wipe_frames", wipe_frames },
	{ "count_pages", count_pages },
	{ "serve_uart", line_from_other_cpu },
	{ "patch_text", stop_and_patch },
	{ "snoop_bus", burst_and_snoop },
	{ "poll_ring", schedule_napi },
	{ "peer", start_peer },
	{ "robin", start_round_robin },
};

static int plant(void *unused)
{
	take_turns(turns, ARRAY_SIZE(turns), first_ms, every_ms);
	return 0;
}

static int __init styles_init(void)
{
	buffer = vmalloc(BUFFER_BYTES);
	if (!buffer)
		return -ENOMEM;
	memset(buffer, 1, BUFFER_BYTES);
	add_line();
	add_link();
	planter = kthread_run_on_cpu(plant, NULL, cpu, "styles/%u");
	return PTR_ERR_OR_ZERO(planter);
}

module_init(styles_init);
MODULE_DESCRIPTION("Makes wake-ups of its own CPU late as drivers do");
MODULE_LICENSE("GPL");
