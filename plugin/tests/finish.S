/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of a guest of CPUS CPUs, included by it: each CPU marks s3, with its number,
 * which is in s0, and rests without interrupts. The last one switches the machine off.
 */
#define FINISHER      0x100000
#define FINISHER_PASS 0x5555

	mv	a0, s3
	mv	a1, s0
	slti	x0, x0, 0x7ff
	csrw	mie, zero
	la	t0, finished
	li	t1, 1
	amoadd.w t1, t1, (t0)
	li	t2, CPUS - 1
	bne	t1, t2, rest
	li	t0, FINISHER
	li	t1, FINISHER_PASS
	sw	t1, 0(t0)
rest:	wfi
	j	rest

	.align	3
finished:
	.word	0
