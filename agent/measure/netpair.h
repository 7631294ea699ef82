/* SPDX-License-Identifier: MIT */
/*
 * netpair - network namespaces of our own, with interfaces and a socket in each.
 *
 * Nobody else sees them: they have no name, and no setting of the machine changes. When
 * their sockets are closed, also by a kill, the kernel removes what it made there, and
 * gives back what was taken into them: nothing is to be put back.
 */
#ifndef NETPAIR_H
#define NETPAIR_H

#include <net/if.h>
#include <stdint.h>

#define NETPAIR_SENDER   0xc0000201 /* 192.0.2.1, for documentation: RFC 5737 */
#define NETPAIR_RECEIVER 0xc0000202
#define NETPAIR_PREFIX   0xffffff00

/* What is asked for. */
struct netpair_request {
	/* of both sockets: socket(2) */
	int family, type, protocol;
	/* two interfaces of the machine, both down, for all pairs of this process; empty:
	 * made, and gone at the end */
	const char *from, *to;
	/* of CAN controllers, in bit/s, 0: none; both are then in one namespace */
	uint32_t bitrate;
};

struct netpair {
	int send_fd, receive_fd; /* -1: none */
	unsigned int send_index, receive_index;
};

/* Needs CAP_SYS_ADMIN and CAP_NET_ADMIN. 0 or -errno: -EBUSY for an interface that is up
 * or has an address, -EOPNOTSUPP for one of no device; what is open is the caller's. */
int netpair_make(struct netpair *out, const struct netpair_request *request);

/* After the last pair is closed: interfaces that were taken go back to the machine. */
void netpair_give_back(void);

#endif
