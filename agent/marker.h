/* SPDX-License-Identifier: MIT */
/*
 * marker - how the agent speaks to the plugin of a virtual board: an instruction that
 * does nothing, with two numbers in fixed registers.
 *
 * Shared by agent and plugin. The plugin knows the instruction when QEMU translates it,
 * and instruments that one alone. On a real machine it costs one cycle at most.
 */
#ifndef MARKER_H
#define MARKER_H

#include <stdint.h>

/* x86-64: a long nop with a displacement that no compiler or assembler pads with. */
#define MARKER_X86_64_BYTES    0x0f, 0x1f, 0x84, 0x00, 'r', 't', 's', 'c'
#define MARKER_X86_64_LATENCY  "rdi"
#define MARKER_X86_64_SEQUENCE "rsi"

/* arm64: hint #127, which the architecture has not given a meaning. */
#define MARKER_AARCH64_WORD     UINT32_C(0xd5032fff)
#define MARKER_AARCH64_LATENCY  "x0"
#define MARKER_AARCH64_SEQUENCE "x1"

/* RISC-V: slti x0, x0, 0x7ff, among the hints set aside for custom use. */
#define MARKER_RISCV64_WORD     UINT32_C(0x7ff02013)
#define MARKER_RISCV64_LATENCY  "a0"
#define MARKER_RISCV64_SEQUENCE "a1"

/* There is no virtual board with a 32-bit ARM CPU. */

/* In place of a latency: the process that executes it becomes, at its next system call, the
 * program that is watched from outside. */
#define MARKER_OF_PROGRAM UINT64_MAX

/* A wake-up that is a candidate for the K worst. */
static inline void marker_candidate(uint64_t latency_ns, uint64_t sequence)
{
#if defined(__x86_64__)
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00; .ascii \"rtsc\""
			 :
			 : "D"(latency_ns), "S"(sequence));
#elif defined(__aarch64__)
	register uint64_t x0 __asm__("x0") = latency_ns;
	register uint64_t x1 __asm__("x1") = sequence;

	__asm__ volatile("hint #127" : : "r"(x0), "r"(x1));
#elif defined(__riscv) && __riscv_xlen == 64
	register uint64_t a0 __asm__("a0") = latency_ns;
	register uint64_t a1 __asm__("a1") = sequence;

	__asm__ volatile("slti x0, x0, 0x7ff" : : "r"(a0), "r"(a1));
#else
	(void)latency_ns;
	(void)sequence;
#endif
}

#endif
