/* SPDX-License-Identifier: MIT */
/* Events that are packets between two interfaces. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "measure/eventkind.h"
#include "measure/netpair.h"
#include "thread/rawcall.h"

#define UDP_PORT   50505
#define RAW_TYPE   0x88b5 /* for experiments on a local network: IEEE 802 */
#define RAW_MAGIC  0x72747363
#define RAW_HEADER 14
#define RAW_FRAME  60 /* the shortest that Ethernet has */

struct raw_frame {
	uint8_t to[6], from[6];
	uint16_t type;
	uint32_t magic, owner, number;
	uint8_t rest[RAW_FRAME - RAW_HEADER - 12];
} __attribute__((packed));

_Static_assert(sizeof(struct raw_frame) == RAW_FRAME, "the shortest frame");

#define NEEDS_RIGHTS(rights, added)                                                    \
	"run through sudo (" rights "), in a container add " added

static const char refused_raw_pair[] =
	NEEDS_RIGHTS("CAP_NET_RAW, CAP_NET_ADMIN and CAP_SYS_ADMIN",
		     "--cap-add NET_RAW --cap-add NET_ADMIN --cap-add SYS_ADMIN");
static const char refused_raw[] = NEEDS_RIGHTS("CAP_NET_RAW", "--cap-add NET_RAW");
static const char refused_xdp_pair[] = NEEDS_RIGHTS(
	"CAP_BPF, CAP_NET_RAW, CAP_NET_ADMIN and CAP_SYS_ADMIN",
	"--cap-add BPF --cap-add NET_RAW --cap-add NET_ADMIN --cap-add SYS_ADMIN");
static const char refused_xdp[] =
	NEEDS_RIGHTS("CAP_BPF, CAP_NET_RAW and CAP_NET_ADMIN",
		     "--cap-add BPF --cap-add NET_RAW --cap-add NET_ADMIN");

static int open_udp(struct event_ends *e, const struct event_choice *choice,
		    struct event_refusal *refusal)
{
	static uint16_t ways; /* which may share their interfaces */
	const struct sockaddr_in there = { .sin_family = AF_INET,
					   .sin_port = htons(UDP_PORT + ways++),
					   .sin_addr.s_addr = htonl(NETPAIR_RECEIVER) };
	const struct netpair_request wanted = { .family = AF_INET,
						.type = SOCK_DGRAM,
						.from = choice->from,
						.to = choice->to };
	char what[EVENT_WHAT];
	struct netpair pair;
	int err;

	event_say_pair(choice, "with veth", what);
	err = netpair_make(&pair, &wanted);
	e->send_fd = pair.send_fd;
	e->receive_fd = pair.receive_fd;
	if (!err) {
		snprintf(what, sizeof(what), "open UDP sockets");
		if (bind(e->receive_fd, (const struct sockaddr *)&there,
			 sizeof(there)) < 0 ||
		    connect(e->send_fd, (const struct sockaddr *)&there,
			    sizeof(there)) < 0 ||
		    fcntl(e->send_fd, F_SETFL, O_NONBLOCK) < 0)
			err = -errno;
	}
	if (err) {
		event_refuse_pair(refusal, choice, what, err);
		return err;
	}
	return event_try_first(e, &event_kind_udp, "packet", refusal);
}

const struct event_kind event_kind_udp = {
	"udp", open_udp, event_send_number, event_receive_number, NULL, true
};

static int send_raw(struct event_ends *e, uint32_t number)
{
	struct raw_frame frame = { .to = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
				   .from = { 0x02, 0, 0, 0, 0, 1 },
				   .type = htons(RAW_TYPE),
				   .magic = RAW_MAGIC,
				   .owner = e->owner,
				   .number = number };
	long done = rawcall4(SYS_write, e->send_fd, (long)&frame,
			     (const void *)sizeof(frame), NULL);

	return done < 0 ? (int)done : 0;
}

static int64_t receive_raw(struct event_ends *e)
{
	struct raw_frame frame;
	long done = rawcall4(SYS_read, e->receive_fd, (long)&frame,
			     (const void *)sizeof(frame), NULL);

	if (done < 0)
		return done;
	return done == sizeof(frame) ? (int64_t)frame.number : -EPIPE;
}

/* Each way has its own frames, so that several may share a line. */
static uint32_t next_owner(void)
{
	static uint32_t ways;

	return (uint32_t)getpid() << 10 | (ways++ & 0x3ff); /* 22 bits, and 10 */
}

#define FIELD_IS(field, value)                                                         \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct raw_frame, field)),         \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(value), 1, 0),               \
		BPF_STMT(BPF_RET | BPF_K, 0)

/* Frames of others do not wake the receiver. Before it is bound: none is there yet. */
static int receive_own(const struct event_ends *e)
{
	struct sock_filter own[] = {
		FIELD_IS(magic, RAW_MAGIC),
		FIELD_IS(owner, e->owner),
		BPF_STMT(BPF_RET | BPF_K, RAW_FRAME),
	};
	const struct sock_fprog program = { .len = sizeof(own) / sizeof(own[0]),
					    .filter = own };

	return setsockopt(e->receive_fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
			  sizeof(program)) < 0
		       ? -errno
		       : 0;
}

static int bind_to(int fd, unsigned int interface)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_protocol = htons(RAW_TYPE),
					.sll_ifindex = (int)interface };

	return bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
}

/* Between two interfaces that are there and up: nothing of them is changed. */
static int open_between(struct netpair *pair, const struct event_choice *choice)
{
	pair->send_index = if_nametoindex(choice->from);
	pair->receive_index = if_nametoindex(choice->to);
	if (!pair->send_index || !pair->receive_index)
		return -ENODEV;
	pair->send_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (pair->send_fd < 0)
		return -errno;
	pair->receive_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	return pair->receive_fd < 0 ? -errno : 0;
}

/* Packet sockets over a pair of its own, or between two interfaces that are there. */
static int open_ends(struct event_ends *e, struct netpair *pair,
		     const struct event_choice *choice, char what[EVENT_WHAT])
{
	const struct netpair_request veth = {
		.family = AF_PACKET, .type = SOCK_RAW, .from = "", .to = ""
	};
	int err;

	*pair = (struct netpair){ .send_fd = -1, .receive_fd = -1 };
	if (*choice->from) {
		snprintf(what, EVENT_WHAT, "open packet sockets on %s and %s",
			 choice->from, choice->to);
		err = open_between(pair, choice);
	} else {
		event_say_pair(choice, "with veth", what);
		err = netpair_make(pair, &veth);
	}
	e->send_fd = pair->send_fd;
	e->receive_fd = pair->receive_fd;
	e->owner = next_owner();
	if (!err)
		err = bind_to(e->send_fd, pair->send_index);
	if (!err && fcntl(e->send_fd, F_SETFL, O_NONBLOCK) < 0)
		err = -errno;
	return err;
}

static int open_raw(struct event_ends *e, const struct event_choice *choice,
		    struct event_refusal *refusal)
{
	char what[EVENT_WHAT];
	struct netpair pair;
	int err = open_ends(e, &pair, choice, what);

	if (!err)
		err = receive_own(e);
	if (!err)
		err = bind_to(e->receive_fd, pair.receive_index);
	if (err) {
		event_refuse_pair(refusal, choice, what, err);
		if (err == -EPERM)
			refusal->remedy =
				*choice->from ? refused_raw : refused_raw_pair;
		return err;
	}
	return event_try_first(e, &event_kind_raw, "packet", refusal);
}

const struct event_kind event_kind_raw = { "raw",       open_raw, send_raw,
					   receive_raw, NULL,     true };

/* --- xdp: the same frames, taken before the network stack has them ------------------- */

/* In place of the packet socket, which has shown where its interface is. */
static int receive_by_xdp(struct event_ends *e, const struct event_choice *choice,
			  unsigned int interface, char what[EVENT_WHAT])
{
	const struct xdp_place place = {
		.beside = *choice->from ? -1 : e->receive_fd,
		.interface = interface,
		.match = { .at = { offsetof(struct raw_frame, magic),
				   offsetof(struct raw_frame, owner) },
			   .bytes = RAW_FRAME,
			   .value = { RAW_MAGIC, e->owner } },
	};
	const char *tried;
	int fd = xdp_socket_open(&e->xdp, &place, &tried);

	snprintf(what, EVENT_WHAT, "%s", tried);
	if (fd < 0)
		return fd;
	close(e->receive_fd);
	e->receive_fd = fd;
	return 0;
}

/* NULL: what every event says. */
static const char *remedy_of_xdp(const struct event_choice *choice, int err)
{
	if (err == -EPERM || err == -EACCES)
		return *choice->from ? refused_xdp : refused_xdp_pair;
	if (err == -EAFNOSUPPORT || err == -ENOSYS)
		return "boot a kernel with CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL, "
		       "or choose another --event";
	if (err == -ENOBUFS)
		return "raise the limit of locked memory (ulimit -l), or choose "
		       "another --event";
	if (err == -EINVAL)
		return "boot Linux 5.9 or newer, or choose another --event";
	if (err == -EBUSY || err == -EEXIST)
		return "end what has an XDP program or socket on that interface (ip "
		       "link shows it), or name another one";
	if (err == -EOPNOTSUPP && *choice->from)
		return "name an interface that has XDP, or choose another --event";
	return NULL;
}

static int open_xdp(struct event_ends *e, const struct event_choice *choice,
		    struct event_refusal *refusal)
{
	static bool opened; /* an interface has one program and one socket */
	bool second = opened && *choice->from;
	char what[EVENT_WHAT] = "share an interface with a second CPU";
	const char *remedy;
	struct netpair pair;
	int err = second ? -EBUSY : open_ends(e, &pair, choice, what);

	if (!err)
		err = receive_by_xdp(e, choice, pair.receive_index, what);
	if (err) {
		event_refuse_pair(refusal, choice, what, err);
		remedy = second ? "name one CPU with --cpus"
				: remedy_of_xdp(choice, err);
		if (remedy)
			refusal->remedy = remedy;
		return err;
	}
	opened = true;
	return event_try_first(e, &event_kind_xdp, "packet", refusal);
}

/* Waits in ppoll(): the kernel has no other wait for such a socket. */
static int64_t receive_xdp(struct event_ends *e)
{
	const struct raw_frame *frame;
	int64_t number;

	while (!(frame = xdp_socket_peek(&e->xdp))) {
		struct pollfd in = { .fd = e->receive_fd, .events = POLLIN };
		long done = rawcall4(SYS_ppoll, (long)&in, 1, NULL, NULL);

		if (done < 0)
			return done;
		if (in.revents & ~POLLIN)
			return -ENETDOWN;
	}
	number = (int64_t)frame->number;
	xdp_socket_release(&e->xdp);
	return number;
}

const struct event_kind event_kind_xdp = { "xdp",       open_xdp, send_raw,
					   receive_xdp, NULL,     true };
