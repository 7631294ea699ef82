/* SPDX-License-Identifier: MIT */
/*
 * vethpair - two network namespaces with a veth pair between them, and a socket in each.
 *
 * Nobody else sees them: they have no name, and no setting of the machine changes. The
 * kernel removes both when their sockets are closed, also by a kill: nothing is to be put
 * back.
 */
#ifndef VETHPAIR_H
#define VETHPAIR_H

#define VETH_SENDER   0xc0000201 /* 192.0.2.1, for documentation: RFC 5737 */
#define VETH_RECEIVER 0xc0000202
#define VETH_PREFIX   0xffffff00

struct veth_pair {
	int send_fd, receive_fd; /* -1: none */
	unsigned int send_index, receive_index;
};

/* Needs CAP_SYS_ADMIN and CAP_NET_ADMIN. 0 or -errno; what is open is the caller's. */
int veth_pair_make(struct veth_pair *out, int family, int type, int protocol);

#endif
