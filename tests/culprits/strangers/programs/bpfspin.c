// SPDX-License-Identifier: MIT
/*
 * A program of BPF at the raw tracepoint sys_enter that computes for 0.6 ms when the thread
 * `metered` enters the kernel. No loader: the instructions are written out.
 */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INSN(c, d, s, o, i)                                                            \
	{ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) }

#define BODY  72
#define TIMES 4000

int main(void)
{
	const struct bpf_insn begin[] = {
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid),
		INSN(BPF_ALU | BPF_MOV | BPF_X, 0, 0, 0, 0), /* w0 = w0: the thread */
		INSN(BPF_JMP | BPF_JNE | BPF_K, 0, 0, BODY + 4, getpid()),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, 2, 1, 0, 0), /* again: */
	};
	const struct bpf_insn end[] = {
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, 1),
		INSN(BPF_JMP | BPF_JLT | BPF_K, 1, 0, -(BODY + 3), TIMES),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	const struct bpf_insn body[] = {
		INSN(BPF_ALU64 | BPF_MUL | BPF_K, 2, 0, 0, 3),
		INSN(BPF_ALU64 | BPF_XOR | BPF_X, 2, 1, 0, 0),
	};
	struct bpf_insn insns[sizeof(begin) / sizeof(*begin) + BODY +
			      sizeof(end) / sizeof(*end)];
	static char log[65536];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
		.insns = (uintptr_t)insns,
		.insn_cnt = sizeof(insns) / sizeof(insns[0]),
		.license = (uintptr_t)"GPL",
	};
	union bpf_attr point = { .raw_tracepoint.name = (uintptr_t)"sys_enter" };
	cpu_set_t set;
	int prog, link;

	memcpy(insns, begin, sizeof(begin));
	for (int i = 0; i < BODY; i++)
		insns[sizeof(begin) / sizeof(*begin) + i] = body[i & 1];
	memcpy(&insns[sizeof(begin) / sizeof(*begin) + BODY], end, sizeof(end));

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	prog = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (prog < 0) {
		attr.log_buf = (uintptr_t)log;
		attr.log_size = sizeof(log);
		attr.log_level = 1;
		syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
		perror(log);
		return 1;
	}
	prctl(PR_SET_NAME, "metered");
	usleep(100000);
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	point.raw_tracepoint.prog_fd = prog;
	link = syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &point, sizeof(point));
	if (link < 0) {
		perror("BPF_RAW_TRACEPOINT_OPEN");
		return 1;
	}
	sched_setaffinity(0, sizeof(set), &set);
	for (int i = 0; i < 3; i++) {
		getppid();
		usleep(50000);
	}
	close(link);
	return 0;
}
