/* SPDX-License-Identifier: MIT */
/* The program is run here, one instruction after the other; the rings are plain memory. */
#include "measure/xdpsocket.h"

#include <linux/if_xdp.h>
#include <stdbool.h>
#include <string.h>

#include "tests/check.h"

#define MAP_FD 77
#define QUEUE  5
#define BYTES  60

static const struct xdp_match match = { .at = { 14, 18 },
					.bytes = BYTES,
					.value = { 0x72747363, 0x80000001 } };

/* --- the program -------------------------------------------------------------------- */

struct machine {
	uint64_t r[11];
	const char *frame, *end;
	unsigned int redirected;
};

static uint64_t load(const struct machine *m, const struct bpf_insn *i)
{
	const char *at = (const char *)(uintptr_t)m->r[i->src_reg] + i->off;
	uint32_t word;

	if (i->src_reg == BPF_REG_1) { /* the kernel makes pointers of these two */
		if (i->off == offsetof(struct xdp_md, data))
			return (uintptr_t)m->frame;
		if (i->off == offsetof(struct xdp_md, data_end))
			return (uintptr_t)m->end;
		CHECK(i->off == offsetof(struct xdp_md, rx_queue_index));
		return QUEUE;
	}
	CHECK(at >= m->frame && at + sizeof(word) <= m->end);
	memcpy(&word, at, sizeof(word));
	return word;
}

/* Returns whether it jumps. */
static bool step(struct machine *m, const struct bpf_insn *i)
{
	uint64_t *to = &m->r[i->dst_reg];

	switch (i->code) {
	case BPF_LDX | BPF_MEM | BPF_W:
		*to = load(m, i);
		return false;
	case BPF_ALU64 | BPF_MOV | BPF_X:
		*to = m->r[i->src_reg];
		return false;
	case BPF_ALU64 | BPF_MOV | BPF_K:
		*to = (uint64_t)(int64_t)i->imm;
		return false;
	case BPF_ALU64 | BPF_ADD | BPF_K:
		*to += (uint64_t)(int64_t)i->imm;
		return false;
	case BPF_LD | BPF_IMM | BPF_DW:
		CHECK(i->src_reg == BPF_PSEUDO_MAP_FD && i[1].code == 0);
		*to = (uint64_t)i->imm;
		return false;
	case BPF_JMP | BPF_JGT | BPF_X:
		return *to > m->r[i->src_reg];
	case BPF_JMP32 | BPF_JNE | BPF_K:
		return (uint32_t)*to != (uint32_t)i->imm;
	case BPF_JMP | BPF_CALL:
		CHECK(i->imm == BPF_FUNC_redirect_map);
		CHECK(m->r[1] == MAP_FD && m->r[2] == QUEUE && m->r[3] == XDP_PASS);
		m->redirected++;
		m->r[0] = XDP_REDIRECT;
		return false;
	default:
		CHECK(false);
		return false;
	}
}

static uint64_t run(const char *frame, size_t bytes)
{
	struct machine m = { .frame = frame, .end = frame + bytes };
	struct bpf_insn program[XDP_PROGRAM_MAX];
	size_t length = xdp_program(program, &match, MAP_FD), at = 0;

	CHECK(length <= XDP_PROGRAM_MAX);
	for (;;) {
		const struct bpf_insn *i = &program[at];

		CHECK(at < length);
		if (i->code == (BPF_JMP | BPF_EXIT))
			break;
		at += i->code == (BPF_LD | BPF_IMM | BPF_DW) ? 2 : 1;
		if (step(&m, i))
			at += (size_t)i->off;
	}
	CHECK(m.redirected == (m.r[0] == XDP_REDIRECT));
	return m.r[0];
}

static void only_frames_of_the_owner_go_to_the_socket(void)
{
	char frame[BYTES + 4] = { 0 };
	uint32_t other = match.value[1] & 0x7fffffff;

	CHECK(run(frame, sizeof(frame)) == XDP_PASS);
	memcpy(frame + match.at[0], &match.value[0], 4);
	CHECK(run(frame, sizeof(frame)) == XDP_PASS);
	memcpy(frame + match.at[1], &match.value[1], 4);
	CHECK(run(frame, sizeof(frame)) == XDP_REDIRECT);
	CHECK(run(frame, BYTES) == XDP_REDIRECT);
	CHECK(run(frame, BYTES - 1) == XDP_PASS);
	CHECK(run(frame, 0) == XDP_PASS);
	memcpy(frame + match.at[1], &other, 4);
	CHECK(run(frame, sizeof(frame)) == XDP_PASS);
	memcpy(frame + match.at[1], &match.value[1], 4);
	frame[match.at[0]] ^= 1;
	CHECK(run(frame, sizeof(frame)) == XDP_PASS);
}

/* --- the rings, with the kernel's part played here ----------------------------------- */

#define INTO 256 /* a frame's bytes begin behind room of the kernel's */

struct kernel {
	struct xdp_socket socket;
	char frames[XDP_FRAMES * XDP_FRAME_BYTES];
	struct xdp_desc come[XDP_FRAMES];
	uint64_t free[XDP_FRAMES];
	_Atomic uint32_t come_producer, come_consumer, free_producer, free_consumer;
};

static struct kernel k;

static void begin_at(uint32_t index)
{
	xdp_socket_init(&k.socket);
	k.socket.frames = k.frames;
	k.socket.receive = (struct xdp_ring){ .producer = &k.come_producer,
					      .consumer = &k.come_consumer,
					      .entries = k.come };
	k.socket.fill = (struct xdp_ring){ .producer = &k.free_producer,
					   .consumer = &k.free_consumer,
					   .entries = k.free };
	k.come_producer = k.come_consumer = k.free_consumer = index;
	k.free_producer = index + XDP_FRAMES;
	for (uint32_t i = 0; i < XDP_FRAMES; i++)
		k.free[(index + i) % XDP_FRAMES] = (uint64_t)i * XDP_FRAME_BYTES;
}

/* Returns whether a frame was free. */
static bool come(uint32_t number)
{
	uint64_t frame;

	if (k.free_consumer == k.free_producer)
		return false;
	frame = k.free[k.free_consumer++ % XDP_FRAMES];
	CHECK(frame % XDP_FRAME_BYTES == 0 && frame < sizeof(k.frames));
	memcpy(k.frames + frame + INTO, &number, sizeof(number));
	CHECK(k.come_producer - k.come_consumer < XDP_FRAMES);
	k.come[k.come_producer++ % XDP_FRAMES].addr = frame + INTO;
	return true;
}

static void takes(uint32_t number)
{
	const void *frame = xdp_socket_peek(&k.socket);
	uint32_t found;

	CHECK(frame && frame == xdp_socket_peek(&k.socket));
	memcpy(&found, frame, sizeof(found));
	CHECK(found == number);
	xdp_socket_release(&k.socket);
}

static void frames_come_in_order_and_go_back_also_where_indices_wrap(void)
{
	begin_at(UINT32_MAX - 2 * XDP_FRAMES);
	for (uint32_t i = 0; i < 8 * XDP_FRAMES; i += 3) {
		CHECK(!xdp_socket_peek(&k.socket));
		CHECK(come(i) && come(i + 1) && come(i + 2));
		takes(i);
		takes(i + 1);
		takes(i + 2);
	}
	CHECK(k.free_producer - k.free_consumer == XDP_FRAMES);
}

static void a_full_ring_has_every_frame_once(void)
{
	char seen[XDP_FRAMES] = { 0 };
	uint32_t i;

	begin_at(7);
	for (i = 0; i < XDP_FRAMES; i++)
		CHECK(come(i));
	CHECK(!come(i));
	takes(0);
	CHECK(come(i) && !come(i));
	for (i = 1; i <= XDP_FRAMES; i++)
		takes(i);
	CHECK(!xdp_socket_peek(&k.socket));
	for (i = 0; i < XDP_FRAMES; i++)
		CHECK(!seen[k.free[i] / XDP_FRAME_BYTES]++);
}

static void what_was_never_opened_can_be_closed(void)
{
	const struct xdp_place nowhere = { .beside = 0, .interface = 1 };
	struct xdp_socket x;
	const char *what = NULL;

	xdp_socket_init(&x);
	CHECK(xdp_socket_open(&x, &nowhere, &what) < 0 && what);
	xdp_socket_close(&x);
	xdp_socket_close(&x);
	CHECK(x.link_fd == -1 && !x.frames);
}

int main(void)
{
	only_frames_of_the_owner_go_to_the_socket();
	frames_come_in_order_and_go_back_also_where_indices_wrap();
	a_full_ring_has_every_frame_once();
	what_was_never_opened_can_be_closed();
	return 0;
}
