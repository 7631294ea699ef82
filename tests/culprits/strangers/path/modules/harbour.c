// SPDX-License-Identifier: GPL-2.0
/*
 * harbour - what delays a packet or an interrupt on its way, chosen by `what`.
 *
 * CPU 0 sends, CPU 1 receives. Each deed is done a few times until the module goes.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#define RARELY 50
#define ROUNDS 6

static char *what = "";
module_param(what, charp, 0444);

static struct net_device *dev;
static struct task_struct *thread;
static unsigned int count;

static __always_inline void compute(unsigned int us)
{
	const u64 end = ktime_get_mono_fast_ns() + us * 1000ULL;

	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
}

static bool rarely(void)
{
	return ++count % RARELY == 0;
}

/* In whichever namespace: the measurement moves some into its own. */
static int take(const char *name)
{
	struct net *net;

	down_read(&net_rwsem);
	for_each_net(net) if (!dev) dev = dev_get_by_name(net, name);
	up_read(&net_rwsem);
	return dev ? 0 : -ENODEV;
}

/* A hook of netfilter, in each namespace. */
static noinline unsigned int levy_duty(void *priv, struct sk_buff *skb,
				       const struct nf_hook_state *state)
{
	if (rarely())
		compute(500);
	return NF_ACCEPT;
}

static const struct nf_hook_ops duty = {
	.hook = levy_duty,
	.pf = NFPROTO_IPV4,
	.hooknum = NF_INET_LOCAL_IN,
	.priority = NF_IP_PRI_FIRST,
};

static int __net_init post(struct net *net)
{
	return nf_register_net_hook(net, &duty);
}

static void __net_exit leave(struct net *net)
{
	nf_unregister_net_hook(net, &duty);
}

static struct pernet_operations posts = { .init = post, .exit = leave };

static int netfilter_begin(void)
{
	return register_pernet_subsys(&posts);
}

static void netfilter_end(void)
{
	unregister_pernet_subsys(&posts);
}

/* A tap. */
static noinline int weigh_cargo(struct sk_buff *skb, struct net_device *in,
				struct packet_type *type, struct net_device *orig)
{
	if (skb->pkt_type != PACKET_OUTGOING && rarely())
		compute(500);
	kfree_skb(skb);
	return NET_RX_SUCCESS;
}

static struct packet_type scales = { .type = htons(ETH_P_ALL), .func = weigh_cargo };

static int tap(const char *name)
{
	int err = take(name);

	if (err)
		return err;
	scales.dev = dev;
	dev_add_pack(&scales);
	return 0;
}

static int tap_begin(void)
{
	return tap("eth1");
}

static int cantap_begin(void)
{
	return tap("can1");
}

static void tap_end(void)
{
	dev_remove_pack(&scales);
}

/* Threads that do something now and then. */
static int often(void *deed)
{
	void (*once)(void) = deed;
	unsigned int i;

	for (i = 0; i < ROUNDS && !kthread_should_stop(); i++) {
		once();
		usleep_range(7130, 7140);
	}
	while (!kthread_should_stop())
		usleep_range(1000, 1100);
	return 0;
}

static int begin(void (*once)(void), unsigned int cpu, const char *name)
{
	thread = kthread_create_on_cpu(often, once, cpu, name);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	wake_up_process(thread);
	return 0;
}

static void thread_end(void)
{
	kthread_stop(thread);
}

/* The lock of a driver's transmission. */
static noinline void seal_hatch(void)
{
	struct netdev_queue *queue = netdev_get_tx_queue(dev, 0);

	__netif_tx_lock_bh(queue);
	compute(500);
	__netif_tx_unlock_bh(queue);
}

static int lock_begin(void)
{
	return take("eth0") ?: begin(seal_hatch, 1, "caulker/%u");
}

/* The lock of the queue of each packet socket, as packet_rcv() takes it: for 500 us. */
static noinline void bar_gangway(void)
{
	static DEFINE_SPINLOCK(alone);
	struct sock *held[4], *sk;
	unsigned int n = 0;
	struct net *net;

	spin_lock_bh(&alone);
	rcu_read_lock();
	for_each_net_rcu(net)
		sk_for_each_rcu(sk, &net->packet.sklist)
			if (n < ARRAY_SIZE(held) && refcount_inc_not_zero(&sk->sk_refcnt))
				held[n++] = sk;
	rcu_read_unlock();
	for (unsigned int i = 0; i < n; i++)
		spin_lock(&held[i]->sk_receive_queue.lock);
	compute(500);
	for (unsigned int i = n; i-- > 0;)
		spin_unlock(&held[i]->sk_receive_queue.lock);
	spin_unlock_bh(&alone);
	for (unsigned int i = 0; i < n; i++)
		sock_put(held[i]);
}

/* Until the sender has given a frame to its device. */
static void wait_for_frame(void)
{
	const struct dql *queue = &netdev_get_tx_queue(dev, 0)->dql;
	const unsigned int sent = READ_ONCE(queue->num_queued);

	while (READ_ONCE(queue->num_queued) == sent && !kthread_should_stop())
		cond_resched();
}

static void watch_gangway(void)
{
	wait_for_frame();
	bar_gangway();
}

static int socket_begin(void)
{
	return take("eth0") ?: begin(watch_gangway, 0, "gangway/%u");
}

/* A softirq that is left to its thread: an interrupt in a tasklet that wakes another. */
static struct task_struct *hand;
static struct hrtimer shift_bell;

static void haul(struct tasklet_struct *unused)
{
	compute(25);
	wake_up_process(hand);
}

static DECLARE_TASKLET(hauling, haul);

static enum hrtimer_restart ring_shift(struct hrtimer *timer)
{
	tasklet_schedule(&hauling);
	return HRTIMER_NORESTART;
}

/* Gives way to whatever is of a higher priority. */
static noinline void quayhand(void)
{
	for (unsigned int i = 0; i < 140; i++) {
		compute(5);
		cond_resched();
	}
}

static int hand_works(void *unused)
{
	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		if (!kthread_should_stop())
			quayhand();
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/* Just before the next event: one comes each 200 us. */
static void start_shift(void)
{
	wait_for_frame();
	hrtimer_start(&shift_bell, ns_to_ktime(186 * NSEC_PER_USEC),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

static int softirq_begin(void)
{
	int err = take("eth0");

	if (err)
		return err;
	hrtimer_init(&shift_bell, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	shift_bell.function = ring_shift;
	hand = kthread_create_on_cpu(hand_works, NULL, 1, "quayhand/%u");
	if (IS_ERR(hand))
		return PTR_ERR(hand);
	sched_set_fifo_low(hand);
	wake_up_process(hand);
	return begin(start_shift, 1, "shift/%u");
}

static void softirq_end(void)
{
	thread_end();
	hrtimer_cancel(&shift_bell);
	tasklet_kill(&hauling);
	kthread_stop(hand);
}

/* A queue that is stopped, and woken by a timer. */
static struct hrtimer sluice;

static enum hrtimer_restart open_sluice(struct hrtimer *timer)
{
	netif_tx_wake_all_queues(dev);
	return HRTIMER_NORESTART;
}

static void close_sluice(void)
{
	netif_tx_stop_all_queues(dev);
	hrtimer_start(&sluice, ns_to_ktime(700 * NSEC_PER_USEC),
		      HRTIMER_MODE_REL_PINNED_HARD);
}

static int queue_begin(void)
{
	hrtimer_init(&sluice, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	sluice.function = open_sluice;
	return take("eth0") ?: begin(close_sluice, 0, "sluice/%u");
}

static void queue_end(void)
{
	thread_end();
	hrtimer_cancel(&sluice);
	netif_tx_wake_all_queues(dev);
}

/* NAPI of another device. */
static struct net_device *boat;
static struct napi_struct napi;

static noinline int sound_depth(struct napi_struct *mine, int budget)
{
	compute(500);
	napi_complete_done(mine, 0);
	return 0;
}

static void sound(void)
{
	local_bh_disable();
	napi_schedule(&napi);
	local_bh_enable();
}

static int poll_begin(void)
{
	boat = alloc_netdev_dummy(0);
	if (!boat)
		return -ENOMEM;
	netif_napi_add(boat, &napi, sound_depth);
	napi_enable(&napi);
	return begin(sound, 1, "boat/%u");
}

static void poll_end(void)
{
	thread_end();
	napi_disable(&napi);
	netif_napi_del(&napi);
	free_netdev(boat);
}

/* Interrupts off. */
static noinline void wind_crane(void)
{
	local_irq_disable();
	compute(500);
	local_irq_enable();
}

static int irqsoff_begin(void)
{
	return begin(wind_crane, 1, "crane/%u");
}

/* Handlers on the line of another driver. */
static int lines[4];
static unsigned int lines_taken;

static irqreturn_t toll_bell(int irq, void *unused)
{
	if (!rarely())
		return IRQ_NONE;
	compute(500);
	return IRQ_HANDLED;
}

static irqreturn_t grind_flour(int irq, void *unused)
{
	if (!rarely())
		return IRQ_NONE;
	compute(500);
	return IRQ_HANDLED;
}

static int share(int irq, irq_handler_t handler, unsigned long flags, const char *name)
{
	int err = request_irq(irq, handler, IRQF_SHARED | flags, name, &lines);

	if (!err)
		lines[lines_taken++] = irq;
	return err;
}

static int hard_begin(void)
{
	struct pci_dev *pci = NULL;
	int last = 0, err = -ENODEV;

	while (lines_taken < 2 && (pci = pci_get_device(0x1234, 0x11e8, pci))) {
		if (pci->irq == last)
			continue;
		last = pci->irq;
		err = share(last, toll_bell, IRQF_NO_THREAD | IRQF_COND_ONESHOT,
			    "bell");
		if (err)
			break;
	}
	pci_dev_put(pci);
	return err;
}

static int shared_begin(void)
{
	return take("can1") ?: share(dev->irq, grind_flour, 0, "miller");
}

static void lines_end(void)
{
	while (lines_taken)
		free_irq(lines[--lines_taken], &lines);
}

static const struct deed {
	const char *name;
	int (*begin)(void);
	void (*end)(void);
} deeds[] = {
	{ "netfilter", netfilter_begin, netfilter_end },
	{ "tap", tap_begin, tap_end },
	{ "cantap", cantap_begin, tap_end },
	{ "lock", lock_begin, thread_end },
	{ "socket", socket_begin, thread_end },
	{ "softirq", softirq_begin, softirq_end },
	{ "queue", queue_begin, queue_end },
	{ "poll", poll_begin, poll_end },
	{ "irqsoff", irqsoff_begin, thread_end },
	{ "hard", hard_begin, lines_end },
	{ "shared", shared_begin, lines_end },
};

static const struct deed *chosen;

static int __init harbour_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(deeds); i++) {
		if (strcmp(deeds[i].name, what))
			continue;
		chosen = &deeds[i];
		return chosen->begin();
	}
	return -EINVAL;
}

static void __exit harbour_exit(void)
{
	chosen->end();
	dev_put(dev);
}

module_init(harbour_init);
module_exit(harbour_exit);
MODULE_DESCRIPTION("Late answers on the way of packets and interrupts");
MODULE_LICENSE("GPL");
