/* SPDX-License-Identifier: MIT */
#include "measure/netpair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/can/netlink.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "files/writefile.h"

#define SENDER   "rtscope-a"
#define RECEIVER "rtscope-b"

struct making {
	struct netpair *pair;
	const struct netpair_request *wanted;
	int err;
};

/* The namespaces that interfaces of the machine are in: other ways share them. */
static struct {
	int here, there;
	unsigned int send_index, receive_index;
} taken = { -1, -1, 0, 0 };

struct request {
	_Alignas(NLMSG_ALIGNTO) struct nlmsghdr header;
	struct ifinfomsg link;
	char attributes[256];
};

static void *end_of(struct request *r)
{
	return (char *)r + NLMSG_ALIGN(r->header.nlmsg_len);
}

static struct rtattr *add(struct request *r, unsigned short type, const void *data,
			  size_t size)
{
	struct rtattr *attribute = end_of(r);

	attribute->rta_type = type;
	attribute->rta_len = (unsigned short)RTA_LENGTH(size);
	if (size)
		memcpy(RTA_DATA(attribute), data, size);
	r->header.nlmsg_len =
		NLMSG_ALIGN(r->header.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
	return attribute;
}

static void end_nested(struct request *r, struct rtattr *nested)
{
	nested->rta_len = (unsigned short)((char *)end_of(r) - (char *)nested);
}

static void begin(struct request *r, int index, unsigned short flags)
{
	memset(r, 0, sizeof(*r));
	r->header.nlmsg_len = NLMSG_LENGTH(sizeof(r->link));
	r->header.nlmsg_type = RTM_NEWLINK;
	r->header.nlmsg_flags = (unsigned short)(NLM_F_REQUEST | NLM_F_ACK | flags);
	r->link.ifi_index = index;
}

/* In this namespace SENDER, in that of there RECEIVER. */
static void want_veth(struct request *r, int there)
{
	const struct ifinfomsg none = { 0 };
	struct rtattr *info, *data, *peer;

	begin(r, 0, NLM_F_CREATE | NLM_F_EXCL);
	add(r, IFLA_IFNAME, SENDER, sizeof(SENDER));
	info = add(r, IFLA_LINKINFO, NULL, 0);
	add(r, IFLA_INFO_KIND, "veth", sizeof("veth"));
	data = add(r, IFLA_INFO_DATA, NULL, 0);
	peer = add(r, VETH_INFO_PEER, &none, sizeof(none));
	add(r, IFLA_IFNAME, RECEIVER, sizeof(RECEIVER));
	add(r, IFLA_NET_NS_FD, &there, sizeof(there));
	end_nested(r, peer);
	end_nested(r, data);
	end_nested(r, info);
}

static void want_vcan(struct request *r)
{
	struct rtattr *info;

	begin(r, 0, NLM_F_CREATE | NLM_F_EXCL);
	add(r, IFLA_IFNAME, SENDER, sizeof(SENDER));
	info = add(r, IFLA_LINKINFO, NULL, 0);
	add(r, IFLA_INFO_KIND, "vcan", sizeof("vcan"));
	end_nested(r, info);
}

static void want_bitrate(struct request *r, int index, uint32_t bitrate)
{
	const struct can_bittiming timing = { .bitrate = bitrate };
	struct rtattr *info, *data;

	begin(r, index, 0);
	info = add(r, IFLA_LINKINFO, NULL, 0);
	add(r, IFLA_INFO_KIND, "can", sizeof("can"));
	data = add(r, IFLA_INFO_DATA, NULL, 0);
	add(r, IFLA_CAN_BITTIMING, &timing, sizeof(timing));
	end_nested(r, data);
	end_nested(r, info);
}

/* By fd, a netlink socket: of the namespace that it was opened in. 0 or -errno. */
static int ask(int fd, const struct request *request)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[512];
	} reply;
	ssize_t size;

	if (send(fd, request, request->header.nlmsg_len, 0) < 0)
		return -errno;
	size = recv(fd, &reply, sizeof(reply), 0);
	if (size < 0)
		return -errno;
	if (size < (ssize_t)NLMSG_LENGTH(sizeof(reply.error)) ||
	    reply.header.nlmsg_type != NLMSG_ERROR)
		return -EIO;
	return reply.error.error;
}

static int netlink(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return fd < 0 ? -errno : fd;
}

/* Of the namespace that this thread is in. 0 or -errno. */
static int ask_here(const struct request *request)
{
	int fd = netlink();
	int err = fd < 0 ? fd : ask(fd, request);

	if (fd >= 0)
		close(fd);
	return err;
}

static struct ifreq named(const char *name)
{
	struct ifreq interface = { 0 };

	memcpy(interface.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
	return interface;
}

static int set_address(int fd, struct ifreq *interface, unsigned long request,
		       uint32_t address)
{
	const struct sockaddr_in in = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(address) };

	memcpy(&interface->ifr_addr, &in, sizeof(in));
	return ioctl(fd, request, interface) < 0 ? -errno : 0;
}

/* Of the namespace that this thread is in: up, with an address, 0: none. Its index or
 * -errno. */
static int set_up(const char *name, uint32_t address)
{
	struct ifreq interface = named(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int inet = address ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
	int err = fd < 0 || (address && inet < 0) ? -errno : 0;

	if (!err && address)
		err = set_address(inet, &interface, SIOCSIFADDR, address);
	if (!err && address)
		err = set_address(inet, &interface, SIOCSIFNETMASK, NETPAIR_PREFIX);
	interface.ifr_flags = IFF_UP | IFF_RUNNING;
	if (!err && ioctl(fd, SIOCSIFFLAGS, &interface) < 0)
		err = -errno;
	if (!err && ioctl(fd, SIOCGIFINDEX, &interface) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (inet >= 0)
		close(inet);
	return err ? err : interface.ifr_ifindex;
}

/* Of the namespace that this thread is in: its interfaces get no addresses of IPv6 by
 * themselves, for which the kernel would send packets beside those that are measured. A
 * kernel without IPv6 has no such file, and a container may not write it. */
static void keep_ipv6_quiet(void)
{
	writefile("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
}

/* Enters a new namespace of this thread, and opens the socket there. Its file or -errno. */
static int enter_new(const struct netpair_request *wanted, int *fd)
{
	int space;

	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	keep_ipv6_quiet();
	*fd = socket(wanted->family, wanted->type | SOCK_CLOEXEC, wanted->protocol);
	if (*fd < 0)
		return -errno;
	space = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	return space < 0 ? -errno : space;
}

/* The kernel gives back no virtual interface when a namespace goes: it removes it. Of a
 * device it tells the bus. */
static int must_have_device(int fd, struct ifreq interface)
{
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };

	interface.ifr_data = (char *)&driver;
	if (ioctl(fd, SIOCETHTOOL, &interface) < 0)
		return -errno;
	return *driver.bus_info ? 0 : -EOPNOTSUPP;
}

/* A move takes addresses away for good, and one of IPv6 may be there while it is down. */
static bool has_address(int fd, struct ifreq interface)
{
	FILE *all = fopen("/proc/thread-self/net/if_inet6", "re");
	char line[128], name[IFNAMSIZ];
	bool found = ioctl(fd, SIOCGIFADDR, &interface) == 0;

	while (all && !found && fgets(line, sizeof(line), all))
		found = sscanf(line, "%*s %*s %*s %*s %*s %15s", name) == 1 &&
			strcmp(name, interface.ifr_name) == 0;
	if (all)
		fclose(all);
	return found;
}

/* The index of an interface that nobody uses, of this thread's namespace, or -errno. */
static int unused(const char *name)
{
	struct ifreq interface = named(name);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? -errno : 0, index = 0;

	if (!err && ioctl(fd, SIOCGIFINDEX, &interface) < 0)
		err = -errno;
	index = interface.ifr_ifindex;
	if (!err && ioctl(fd, SIOCGIFFLAGS, &interface) < 0)
		err = -errno;
	if (!err && (interface.ifr_flags & IFF_UP || has_address(fd, interface)))
		err = -EBUSY;
	if (!err)
		err = must_have_device(fd, interface);
	if (fd >= 0)
		close(fd);
	return err ? err : index;
}

/* From the namespace of outside, a netlink socket, into that of space. 0 or -errno. */
static int take(int outside, int index, int space)
{
	struct request r;

	begin(&r, index, 0);
	add(&r, IFLA_NET_NS_FD, &space, sizeof(space));
	return ask(outside, &r);
}

static int raise_end(const char *name, uint32_t address, unsigned int *index)
{
	int found = set_up(name, address);

	*index = (unsigned int)found;
	return found < 0 ? found : 0;
}

/* A socket in a namespace that is there. Its file or -errno. */
static int socket_in(int space, const struct netpair_request *wanted)
{
	int fd = setns(space, CLONE_NEWNET) < 0
			 ? -1
			 : socket(wanted->family, wanted->type | SOCK_CLOEXEC,
				  wanted->protocol);

	return fd < 0 ? -errno : fd;
}

static int join_taken(struct making *m)
{
	struct netpair *pair = m->pair;

	pair->send_index = taken.send_index;
	pair->receive_index = taken.receive_index;
	pair->send_fd = socket_in(taken.here, m->wanted);
	if (pair->send_fd < 0)
		return pair->send_fd;
	pair->receive_fd = socket_in(taken.there, m->wanted);
	return pair->receive_fd < 0 ? pair->receive_fd : 0;
}

static void keep_taken(const struct making *m, int here, int there)
{
	taken.here = here;
	taken.there = there;
	taken.send_index = m->pair->send_index;
	taken.receive_index = m->pair->receive_index;
}

/* Sockets in two namespaces, joined by veth or by a cable between two interfaces. */
static int make_joined(struct making *m, int outside, int from, int to)
{
	struct netpair *pair = m->pair;
	bool ours = !*m->wanted->from;
	int here = -1, there = enter_new(m->wanted, &pair->receive_fd);
	int err = there < 0 ? there : 0;
	struct request r;

	if (!err) {
		here = enter_new(m->wanted, &pair->send_fd);
		err = here < 0 ? here : 0;
	}
	if (!err && ours) {
		want_veth(&r, there);
		err = ask_here(&r);
	} else if (!err) {
		err = take(outside, from, here);
		if (!err)
			err = take(outside, to, there);
	}
	if (!err)
		err = raise_end(ours ? SENDER : m->wanted->from, NETPAIR_SENDER,
				&pair->send_index);
	if (!err && setns(there, CLONE_NEWNET) < 0)
		err = -errno;
	if (!err)
		err = raise_end(ours ? RECEIVER : m->wanted->to, NETPAIR_RECEIVER,
				&pair->receive_index);
	if (!err && !ours) {
		keep_taken(m, here, there);
		return 0;
	}
	if (there >= 0)
		close(there);
	if (here >= 0)
		close(here);
	return err;
}

static int raise_controller(const char *name, uint32_t bitrate, unsigned int *index)
{
	struct request r;
	int err;

	*index = if_nametoindex(name);
	if (!*index)
		return -errno;
	want_bitrate(&r, (int)*index, bitrate);
	err = ask_here(&r);
	return err ? err : raise_end(name, 0, index);
}

/* Sockets in one namespace, on one virtual CAN, or on two controllers of one bus. */
static int make_can(struct making *m, int outside, int from, int to)
{
	const struct netpair_request *wanted = m->wanted;
	struct netpair *pair = m->pair;
	int here = enter_new(wanted, &pair->receive_fd);
	int err = here < 0 ? here : 0;
	struct request r;

	if (!err) {
		pair->send_fd = socket(wanted->family, wanted->type | SOCK_CLOEXEC,
				       wanted->protocol);
		err = pair->send_fd < 0 ? -errno : 0;
	}
	if (!err && !*wanted->from) {
		want_vcan(&r);
		err = ask_here(&r);
		if (!err)
			err = raise_end(SENDER, 0, &pair->send_index);
		pair->receive_index = pair->send_index;
	} else if (!err) {
		err = take(outside, from, here);
		if (!err)
			err = take(outside, to, here);
		if (!err)
			err = raise_controller(wanted->from, wanted->bitrate,
					       &pair->send_index);
		if (!err)
			err = raise_controller(wanted->to, wanted->bitrate,
					       &pair->receive_index);
		if (!err) {
			keep_taken(m, here, here);
			return 0;
		}
	}
	if (here >= 0)
		close(here);
	return err;
}

static int make_in_namespaces(struct making *m)
{
	const struct netpair_request *wanted = m->wanted;
	int from, to, outside, err;

	if (*wanted->from && taken.here >= 0)
		return join_taken(m);
	from = *wanted->from ? unused(wanted->from) : 0;
	to = *wanted->to ? unused(wanted->to) : 0;
	outside = netlink();
	if (from < 0 || to < 0)
		err = from < 0 ? from : to;
	else if (outside < 0)
		err = outside;
	else
		err = (wanted->bitrate ? make_can : make_joined)(m, outside, from, to);
	if (outside >= 0)
		close(outside);
	return err;
}

static void *make_in_thread(void *arg)
{
	struct making *m = arg;

	m->err = make_in_namespaces(m);
	return NULL;
}

/* In a thread of its own: a namespace that it leaves with its end, and no other has. */
int netpair_make(struct netpair *out, const struct netpair_request *wanted)
{
	struct making making = { out, wanted, 0 };
	pthread_t thread;
	int err;

	*out = (struct netpair){ .send_fd = -1, .receive_fd = -1 };
	err = pthread_create(&thread, NULL, make_in_thread, &making);
	if (err)
		return -err;
	pthread_join(thread, NULL);
	return making.err;
}

void netpair_give_back(void)
{
	if (taken.here >= 0)
		close(taken.here);
	if (taken.there >= 0 && taken.there != taken.here)
		close(taken.there);
	taken.here = taken.there = -1;
}
