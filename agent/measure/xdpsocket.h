/* SPDX-License-Identifier: MIT */
/*
 * xdpsocket - an AF_XDP socket that gets the frames of one owner.
 *
 * A BPF program in the path of an interface redirects these frames, and lets all others
 * pass. It runs behind the driver (XDP_FLAGS_SKB_MODE), where any interface has it, and
 * the kernel copies the frame (XDP_COPY). It hangs on a file descriptor (bpf_link): also
 * a kill takes it away.
 */
#ifndef XDPSOCKET_H
#define XDPSOCKET_H

#include <linux/bpf.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define XDP_FRAMES      256 /* a power of two: more at once are lost */
#define XDP_FRAME_BYTES 2048
#define XDP_PROGRAM_MAX 24

/* A ring that the kernel shares: an index grows for ever, its place is index % size. */
struct xdp_ring {
	void *map; /* NULL: none */
	size_t bytes;
	_Atomic uint32_t *producer, *consumer;
	void *entries;
};

struct xdp_socket {
	char *frames;                  /* NULL: none */
	struct xdp_ring fill, receive; /* frames that are free, frames that have come */
	int link_fd;                   /* -1: none */
};

/* Which frames: two words of a frame, as they lie in memory, and its least length. */
struct xdp_match {
	uint16_t at[2], bytes;
	uint32_t value[2];
};

/* Where they come in. */
struct xdp_place {
	int beside; /* a socket of the interface's network namespace; -1: it is ours */
	unsigned int interface;
	struct xdp_match match;
};

/* The program, which redirects what matches to the sockets of map_fd. Its length. */
size_t xdp_program(struct bpf_insn out[XDP_PROGRAM_MAX], const struct xdp_match *match,
		   int map_fd);

void xdp_socket_init(struct xdp_socket *x);

/* The socket or -errno; then *what says in words what was tried, and what is open is the
 * caller's. */
int xdp_socket_open(struct xdp_socket *x, const struct xdp_place *place,
		    const char **what);

/* Closes all but the socket, also after an open that has failed half-way. */
void xdp_socket_close(struct xdp_socket *x);

/* The oldest frame that has come; NULL: none has. */
const void *xdp_socket_peek(const struct xdp_socket *x);

/* Gives the frame that peek has returned back to the kernel. */
void xdp_socket_release(struct xdp_socket *x);

#endif
