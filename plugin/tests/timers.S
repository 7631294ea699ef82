/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest whose path hangs on the moment of each of its timers: no firmware and no
 * kernel, on QEMU's riscv64 `virt` machine. Each of CPUS CPUs, ROUNDS times,
 *
 *   programs its timer, 0.1 to 25.6 us ahead, and waits for it;
 *   spins for as long as a sum says into which all the lateness so far has gone,
 *
 * then marks that sum, with its number. The last one switches the machine off.
 */
#define MTIMECMP      0x2004000
#define MTI           (1 << 7)

	.option norvc
	.globl	_start
_start:
	csrr	s0, mhartid
	li	s1, MTIMECMP
	slli	t0, s0, 3
	add	s1, s1, t0
	li	t0, MTI
	csrw	mie, t0
	li	s2, ROUNDS
	addi	s3, s0, 1
	li	s4, 25173
	li	s5, 13849

next:	/* s3: the sum, which is also where the next distance comes from */
	mul	s3, s3, s4
	add	s3, s3, s5
	srli	t0, s3, 8
	andi	t0, t0, 0xff
	addi	t0, t0, 1
	rdtime	s6
	add	s6, s6, t0
	sd	s6, 0(s1)
1:	wfi
	csrr	t0, mip
	andi	t0, t0, MTI
	beqz	t0, 1b
	rdtime	t0
	sub	t0, t0, s6
	add	s3, s3, t0
	andi	t0, s3, 0x3f
1:	addi	t0, t0, -1
	bgez	t0, 1b
	addi	s2, s2, -1
	bnez	s2, next

#include "finish.S"
