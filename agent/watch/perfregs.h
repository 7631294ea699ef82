/* SPDX-License-Identifier: MIT */
/*
 * perfregs - which user registers a sample carries, by the kernel's perf_regs.h.
 *
 * PERFREGS_SP is the place of the stack pointer, PERFREGS_IP the bit of where it is.
 *
 * All that a frame may be unwound from: the numbers of the host's table
 * (src/rtscope/programs/binaries/unwind.py) are the bits set here, in ascending order.
 */
#ifndef PERFREGS_H
#define PERFREGS_H

#include <stdint.h>

#if defined(__x86_64__)
/* AX BX CX DX SI DI BP SP IP FLAGS CS SS, R8 to R15: segment registers are refused */
#define PERFREGS_MASK UINT64_C(0xff0fff)
#define PERFREGS_SP   7
#define PERFREGS_IP   8
#elif defined(__aarch64__)
#define PERFREGS_MASK UINT64_C(0x1ffffffff) /* X0 to X29, LR, SP, PC */
#define PERFREGS_SP   31
#define PERFREGS_IP   32
#elif defined(__arm__)
#define PERFREGS_MASK UINT64_C(0xffff) /* R0 to R15 */
#define PERFREGS_SP   13
#define PERFREGS_IP   15
#elif defined(__riscv)
#define PERFREGS_MASK UINT64_C(0xffffffff) /* PC, X1 to X31 */
#define PERFREGS_SP   2
#define PERFREGS_IP   0
#else
#define PERFREGS_MASK UINT64_C(0) /* counts, but no stacks */
#define PERFREGS_SP   0
#define PERFREGS_IP   0
#endif

#endif
