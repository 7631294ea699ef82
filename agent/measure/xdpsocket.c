/* SPDX-License-Identifier: MIT */
#include "measure/xdpsocket.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

#define QUEUE 0 /* of the interface: where frames come that have no flow */

#define BUSY_WAIT_NS 20000000 /* again and again for two seconds */
#define BUSY_TIMES   100

/* --- the program -------------------------------------------------------------------- */

#define INSN(op, to, from, offset, number)                                             \
	((struct bpf_insn){ .code = (op),                                              \
			    .dst_reg = (to),                                           \
			    .src_reg = (from),                                         \
			    .off = (int16_t)(offset),                                  \
			    .imm = (int32_t)(number) })
#define LOAD(to, from, offset) INSN(BPF_LDX | BPF_MEM | BPF_W, to, from, offset, 0)
#define MOVE(to, from)         INSN(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define SET(to, number)        INSN(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, number)
#define ADD(to, number)        INSN(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, number)
#define CALL(number)           INSN(BPF_JMP | BPF_CALL, 0, 0, 0, number)
#define LEAVE                  INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

#define PASS_AT 15 /* what all others jump to */

size_t xdp_program(struct bpf_insn out[XDP_PROGRAM_MAX], const struct xdp_match *match,
		   int map_fd)
{
	size_t n = 0;

	out[n++] = LOAD(BPF_REG_2, BPF_REG_1, offsetof(struct xdp_md, data));
	out[n++] = LOAD(BPF_REG_3, BPF_REG_1, offsetof(struct xdp_md, data_end));
	out[n++] = MOVE(BPF_REG_4, BPF_REG_2);
	out[n++] = ADD(BPF_REG_4, match->bytes);
	out[n] = INSN(BPF_JMP | BPF_JGT | BPF_X, BPF_REG_4, BPF_REG_3, PASS_AT - n - 1,
		      0);
	n++;
	for (unsigned int i = 0; i < 2; i++) {
		out[n++] = LOAD(BPF_REG_5, BPF_REG_2, match->at[i]);
		/* of 32 bits: one of 64 would extend the sign of its number */
		out[n] = INSN(BPF_JMP32 | BPF_JNE | BPF_K, BPF_REG_5, 0,
			      PASS_AT - n - 1, match->value[i]);
		n++;
	}
	out[n++] = LOAD(BPF_REG_2, BPF_REG_1, offsetof(struct xdp_md, rx_queue_index));
	out[n++] = INSN(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0,
			map_fd);
	out[n++] = INSN(0, 0, 0, 0, 0);      /* the upper half of that number */
	out[n++] = SET(BPF_REG_3, XDP_PASS); /* if no socket has this queue */
	out[n++] = CALL(BPF_FUNC_redirect_map);
	out[n++] = LEAVE;
	out[n++] = SET(BPF_REG_0, XDP_PASS);
	out[n++] = LEAVE;
	return n;
}

static int bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	int done = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	return done < 0 ? -errno : done;
}

static int make_map(int socket)
{
	const uint32_t key = QUEUE;
	union bpf_attr attr = { 0 };
	int err, fd;

	attr.map_type = BPF_MAP_TYPE_XSKMAP;
	attr.key_size = attr.value_size = sizeof(key);
	attr.max_entries = QUEUE + 1;
	fd = bpf(BPF_MAP_CREATE, &attr);
	if (fd < 0)
		return fd;
	attr = (union bpf_attr){ 0 };
	attr.map_fd = (uint32_t)fd;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&socket;
	err = bpf(BPF_MAP_UPDATE_ELEM, &attr);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int load_program(const struct xdp_match *match, int map_fd)
{
	struct bpf_insn program[XDP_PROGRAM_MAX];
	union bpf_attr attr = { 0 };

	attr.prog_type = BPF_PROG_TYPE_XDP;
	attr.insn_cnt = (uint32_t)xdp_program(program, match, map_fd);
	attr.insns = (uintptr_t)program;
	attr.license = (uintptr_t)"MIT";
	return bpf(BPF_PROG_LOAD, &attr);
}

static int attach(int program_fd, unsigned int interface)
{
	union bpf_attr attr = { 0 };

	attr.link_create.prog_fd = (uint32_t)program_fd;
	attr.link_create.target_ifindex = interface;
	attr.link_create.attach_type = BPF_XDP;
	attr.link_create.flags = XDP_FLAGS_SKB_MODE;
	return bpf(BPF_LINK_CREATE, &attr);
}

/* The link keeps the program, and that its map. */
static int redirect_to(struct xdp_socket *x, int socket, const struct xdp_place *place,
		       const char **what)
{
	int map_fd, program_fd = -1;

	*what = "make a BPF map";
	map_fd = make_map(socket);
	if (map_fd < 0)
		return map_fd;
	*what = "load a BPF program";
	program_fd = load_program(&place->match, map_fd);
	close(map_fd);
	if (program_fd < 0)
		return program_fd;
	*what = "attach a BPF program to the interface";
	x->link_fd = attach(program_fd, place->interface);
	close(program_fd);
	return x->link_fd < 0 ? x->link_fd : 0;
}

/* --- the rings ---------------------------------------------------------------------- */

static int map_ring(struct xdp_ring *ring, int fd, const struct xdp_ring_offset *at,
		    size_t entry, uint64_t page)
{
	void *map;

	ring->bytes = at->desc + XDP_FRAMES * entry;
	map = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		   fd, (off_t)page);
	if (map == MAP_FAILED)
		return -errno;
	ring->map = map;
	ring->producer = (void *)((char *)map + at->producer);
	ring->consumer = (void *)((char *)map + at->consumer);
	ring->entries = (char *)map + at->desc;
	return 0;
}

static void set_free(struct xdp_ring *fill, uint32_t producer, uint64_t frame)
{
	((uint64_t *)fill->entries)[producer % XDP_FRAMES] = frame;
	/* release: pairs with the kernel's acquire, before it reads which frame is free */
	atomic_store_explicit(fill->producer, producer + 1, memory_order_release);
}

static int give_memory(struct xdp_socket *x, int fd)
{
	const int frames = XDP_FRAMES, one = 1; /* nothing is sent: nothing completes */
	struct xdp_umem_reg memory = { .len = XDP_FRAMES * XDP_FRAME_BYTES,
				       .chunk_size = XDP_FRAME_BYTES };
	struct xdp_mmap_offsets at = { 0 };
	socklen_t size = sizeof(at);
	int err;

	x->frames = mmap(NULL, memory.len, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (x->frames == MAP_FAILED) {
		x->frames = NULL;
		return -errno;
	}
	memory.addr = (uintptr_t)x->frames;
	if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &memory, sizeof(memory)) < 0 ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &frames, sizeof(frames)) < 0 ||
	    setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &one, sizeof(one)) < 0 ||
	    setsockopt(fd, SOL_XDP, XDP_RX_RING, &frames, sizeof(frames)) < 0 ||
	    getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size) < 0)
		return -errno;
	if (size != sizeof(at)) /* a kernel before 5.4 */
		return -EINVAL;
	err = map_ring(&x->fill, fd, &at.fr, sizeof(uint64_t),
		       XDP_UMEM_PGOFF_FILL_RING);
	if (!err)
		err = map_ring(&x->receive, fd, &at.rx, sizeof(struct xdp_desc),
			       XDP_PGOFF_RX_RING);
	for (uint32_t i = 0; !err && i < XDP_FRAMES; i++)
		set_free(&x->fill, i, (uint64_t)i * XDP_FRAME_BYTES);
	return err;
}

const void *xdp_socket_peek(const struct xdp_socket *x)
{
	const struct xdp_desc *come = x->receive.entries;
	/* relaxed: only this thread writes it */
	uint32_t at = atomic_load_explicit(x->receive.consumer, memory_order_relaxed);

	/* acquire: pairs with the kernel's release, after the frame and its description */
	if (atomic_load_explicit(x->receive.producer, memory_order_acquire) == at)
		return NULL;
	return x->frames + come[at % XDP_FRAMES].addr;
}

void xdp_socket_release(struct xdp_socket *x)
{
	const struct xdp_desc *come = x->receive.entries;
	/* relaxed: only this thread writes them */
	uint32_t at = atomic_load_explicit(x->receive.consumer, memory_order_relaxed);
	uint32_t end = atomic_load_explicit(x->fill.producer, memory_order_relaxed);
	/* the kernel wants the begin of a frame, not that of its bytes */
	uint64_t frame = come[at % XDP_FRAMES].addr & ~(uint64_t)(XDP_FRAME_BYTES - 1);

	/* release: pairs with the kernel's acquire, before it writes a description here */
	atomic_store_explicit(x->receive.consumer, at + 1, memory_order_release);
	set_free(&x->fill, end, frame);
}

/* --- the socket --------------------------------------------------------------------- */

void xdp_socket_init(struct xdp_socket *x)
{
	*x = (struct xdp_socket){ .link_fd = -1 };
}

static int enter_namespace_of(int beside)
{
	int space = ioctl(beside, SIOCGSKNS);
	int err = space < 0 || setns(space, CLONE_NEWNET) < 0 ? -errno : 0;

	if (space >= 0)
		close(space);
	return err;
}

/* The kernel gives an interface back a while after its last socket has been closed. */
static int bind_patiently(int fd, const struct xdp_place *place)
{
	const struct sockaddr_xdp at = { .sxdp_family = AF_XDP,
					 .sxdp_flags = XDP_COPY,
					 .sxdp_ifindex = place->interface,
					 .sxdp_queue_id = QUEUE };
	const struct timespec while_ns = { .tv_nsec = BUSY_WAIT_NS };
	int err = -EBUSY;

	for (unsigned int i = 0; err == -EBUSY && i < BUSY_TIMES; i++) {
		if (i)
			nanosleep(&while_ns, NULL);
		err = bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ? -errno
									     : 0;
	}
	return err;
}

static int open_here(struct xdp_socket *x, const struct xdp_place *place,
		     const char **what)
{
	int err, fd;

	*what = "open an AF_XDP socket";
	fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	*what = "give an AF_XDP socket its memory";
	err = give_memory(x, fd);
	if (!err) {
		*what = "bind an AF_XDP socket to the interface";
		err = bind_patiently(fd, place);
	}
	if (!err)
		err = redirect_to(x, fd, place, what);
	if (!err)
		return fd;
	close(fd);
	return err;
}

struct opening {
	struct xdp_socket *x;
	const struct xdp_place *place;
	const char **what;
	int fd;
};

static void *open_there(void *arg)
{
	struct opening *o = arg;

	o->fd = enter_namespace_of(o->place->beside);
	if (!o->fd)
		o->fd = open_here(o->x, o->place, o->what);
	return NULL;
}

int xdp_socket_open(struct xdp_socket *x, const struct xdp_place *place,
		    const char **what)
{
	struct opening opening = { x, place, what, -EIO };
	pthread_t thread;
	int err;

	if (place->beside < 0)
		return open_here(x, place, what);
	*what = "enter the network namespace of the receiver";
	err = pthread_create(&thread, NULL, open_there, &opening);
	if (err)
		return -err;
	pthread_join(thread, NULL);
	return opening.fd;
}

static void close_ring(struct xdp_ring *ring)
{
	if (ring->map)
		munmap(ring->map, ring->bytes);
}

void xdp_socket_close(struct xdp_socket *x)
{
	if (x->link_fd >= 0)
		close(x->link_fd);
	close_ring(&x->fill);
	close_ring(&x->receive);
	if (x->frames)
		munmap(x->frames, XDP_FRAMES * XDP_FRAME_BYTES);
	xdp_socket_init(x);
}
