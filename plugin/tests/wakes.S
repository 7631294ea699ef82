/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest whose CPUs wake each other: no firmware and no kernel, on QEMU's riscv64
 * `virt` machine. CPU 0, ROUNDS times,
 *
 *   spins SPINS times (two instructions each), so that CPU 1 is asleep;
 *   reads its clock, and interrupts CPU 1;
 *   waits until CPU 1 has written its own clock, read when it woke;
 *   marks how much later that was, in ns; UINT64_MAX and less if it was earlier.
 *
 * Then it switches the machine off.
 */
#define FINISHER      0x100000
#define FINISHER_PASS 0x5555
#define MSIP          0x2000000
#define MSI           (1 << 3)
#define NS_PER_TIME   100

	.option norvc
	.globl	_start
_start:
	csrr	t0, mhartid
	li	s0, MSIP + 4
	la	s1, woken
	bnez	t0, sleeper
	li	s2, ROUNDS
	li	s3, 0

next:	li	t0, SPINS
1:	addi	t0, t0, -1
	bnez	t0, 1b
	rdtime	s4
	li	t0, 1
	sw	t0, 0(s0)
1:	ld	t0, 0(s1)
	beqz	t0, 1b
	sd	zero, 0(s1)
	sub	a0, t0, s4
	li	t0, NS_PER_TIME
	mul	a0, a0, t0
	addi	s3, s3, 1
	mv	a1, s3
	slti	x0, x0, 0x7ff
	bne	s3, s2, next
	li	t0, FINISHER
	li	t1, FINISHER_PASS
	sw	t1, 0(t0)
	j	.

sleeper:
	li	t0, MSI
	csrw	mie, t0
1:	wfi
	csrr	t0, mip
	andi	t0, t0, MSI
	beqz	t0, 1b
	rdtime	t1
	sw	zero, 0(s0)
	sd	t1, 0(s1)
	j	1b

	.align	3
woken:	.dword	0
