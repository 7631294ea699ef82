// SPDX-License-Identifier: MIT
/*
 * customs INTERFACE AFTER_MS MS: attach a program of BPF as generic XDP for a time, after
 * one since its start: the kernel's proof that it ends takes long. It computes for some
 * 500 us at a frame in 16. No loader: the instructions are written out.
 */
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define INSN(c, d, s, o, i)                                                            \
	{ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) }

#define BODY  72
#define TIMES 3400

int main(int argc, char **argv)
{
	const struct bpf_insn begin[] = {
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_prandom_u32),
		INSN(BPF_ALU64 | BPF_AND | BPF_K, 0, 0, 0, 15),
		INSN(BPF_JMP | BPF_JNE | BPF_K, 0, 0, BODY + 4, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 1, 0, 0), /* again: */
	};
	const struct bpf_insn end[] = {
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, 1),
		INSN(BPF_JMP | BPF_JLT | BPF_K, 1, 0, -(BODY + 3), TIMES),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, XDP_PASS),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	const struct bpf_insn body[] = {
		INSN(BPF_ALU64 | BPF_MUL | BPF_K, 2, 0, 0, 3),
		INSN(BPF_ALU64 | BPF_XOR | BPF_X, 2, 1, 0, 0),
	};
	enum {
		FIRST = sizeof(begin) / sizeof(*begin),
		LAST = sizeof(end) / sizeof(*end)
	};
	struct bpf_insn insns[FIRST + BODY + LAST];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_XDP,
		.insns = (uintptr_t)insns,
		.insn_cnt = FIRST + BODY + LAST,
		.license = (uintptr_t)"GPL",
	};
	union bpf_attr link;
	struct timespec at;
	int prog;

	if (argc != 4)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += atol(argv[2]) % 1000 * 1000000;
	at.tv_sec += atol(argv[2]) / 1000 + at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	memcpy(insns, begin, sizeof(begin));
	for (int i = 0; i < BODY; i++)
		insns[FIRST + i] = body[i & 1];
	memcpy(&insns[FIRST + BODY], end, sizeof(end));
	prog = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (prog < 0) {
		perror("BPF_PROG_LOAD");
		return 1;
	}
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	memset(&link, 0, sizeof(link));
	link.link_create.prog_fd = (uint32_t)prog;
	link.link_create.target_ifindex = if_nametoindex(argv[1]);
	link.link_create.attach_type = BPF_XDP;
	link.link_create.flags = XDP_FLAGS_SKB_MODE;
	if (syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof(link)) < 0) {
		perror("BPF_LINK_CREATE");
		return 1;
	}
	usleep((useconds_t)atoi(argv[3]) * 1000);
	return 0;
}
