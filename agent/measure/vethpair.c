/* SPDX-License-Identifier: MIT */
#include "measure/vethpair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "files/writefile.h"

#define SENDER   "rtscope-a"
#define RECEIVER "rtscope-b"

struct making {
	struct veth_pair *pair;
	int family, type, protocol;
	int err;
};

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

/* In this namespace SENDER, in that of there RECEIVER. */
static void fill(struct request *r, int there)
{
	const struct ifinfomsg none = { 0 };
	struct rtattr *info, *data, *peer;

	memset(r, 0, sizeof(*r));
	r->header.nlmsg_len = NLMSG_LENGTH(sizeof(r->link));
	r->header.nlmsg_type = RTM_NEWLINK;
	r->header.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
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

static int make_link(int there)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[512];
	} reply;
	struct request request;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t size;
	int err = 0;

	if (fd < 0)
		return -errno;
	fill(&request, there);
	if (send(fd, &request, request.header.nlmsg_len, 0) < 0)
		err = -errno;
	size = err ? 0 : recv(fd, &reply, sizeof(reply), 0);
	if (size < 0)
		err = -errno;
	else if (!err && (size < (ssize_t)NLMSG_LENGTH(sizeof(reply.error)) ||
			  reply.header.nlmsg_type != NLMSG_ERROR))
		err = -EIO;
	close(fd);
	return err ? err : reply.error.error;
}

static int set_address(int fd, struct ifreq *interface, unsigned long request,
		       uint32_t address)
{
	const struct sockaddr_in in = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(address) };

	memcpy(&interface->ifr_addr, &in, sizeof(in));
	return ioctl(fd, request, interface) < 0 ? -errno : 0;
}

/* Of the namespace that this thread is in: an address, and up. Its index or -errno. */
static int set_up(const char *name, uint32_t address)
{
	struct ifreq interface = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	memcpy(interface.ifr_name, name, strlen(name) + 1);
	err = set_address(fd, &interface, SIOCSIFADDR, address);
	if (!err)
		err = set_address(fd, &interface, SIOCSIFNETMASK, VETH_PREFIX);
	interface.ifr_flags = IFF_UP | IFF_RUNNING;
	if (!err && ioctl(fd, SIOCSIFFLAGS, &interface) < 0)
		err = -errno;
	if (!err && ioctl(fd, SIOCGIFINDEX, &interface) < 0)
		err = -errno;
	close(fd);
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
static int enter_new(const struct making *m, int *fd)
{
	int space;

	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	keep_ipv6_quiet();
	*fd = socket(m->family, m->type | SOCK_CLOEXEC, m->protocol);
	if (*fd < 0)
		return -errno;
	space = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	return space < 0 ? -errno : space;
}

static int make_in_namespaces(struct making *m)
{
	struct veth_pair *pair = m->pair;
	int here = -1, there = enter_new(m, &pair->receive_fd);
	int err = there < 0 ? there : 0;
	int index = 0;

	if (!err) {
		here = enter_new(m, &pair->send_fd);
		err = here < 0 ? here : make_link(there);
	}
	if (!err) {
		index = set_up(SENDER, VETH_SENDER);
		pair->send_index = (unsigned int)index;
		err = index < 0 ? index : 0;
	}
	if (!err && setns(there, CLONE_NEWNET) < 0)
		err = -errno;
	if (!err) {
		index = set_up(RECEIVER, VETH_RECEIVER);
		pair->receive_index = (unsigned int)index;
		err = index < 0 ? index : 0;
	}
	if (there >= 0)
		close(there);
	if (here >= 0)
		close(here);
	return err;
}

static void *make_in_thread(void *arg)
{
	struct making *m = arg;

	m->err = make_in_namespaces(m);
	return NULL;
}

/* In a thread of its own: a namespace that it leaves with its end, and no other has. */
int veth_pair_make(struct veth_pair *out, int family, int type, int protocol)
{
	struct making making = { out, family, type, protocol, 0 };
	pthread_t thread;
	int err;

	*out = (struct veth_pair){ .send_fd = -1, .receive_fd = -1 };
	err = pthread_create(&thread, NULL, make_in_thread, &making);
	if (err)
		return -err;
	pthread_join(thread, NULL);
	return making.err;
}
