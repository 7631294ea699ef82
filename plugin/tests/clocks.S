/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest that compares the clocks of its CPUs: no firmware and no kernel, on QEMU's
 * riscv64 `virt` machine. Each of CPUS CPUs, ROUNDS times,
 *
 *   reads the latest reading that any CPU has published, then its own clock;
 *   counts where its own is the earlier one, and publishes its own if that is later;
 *
 * then marks the count, with its number. The last one switches the machine off.
 */
#define FINISHER      0x100000
#define FINISHER_PASS 0x5555

	.option norvc
	.globl	_start
_start:
	csrr	s0, mhartid
	li	s2, ROUNDS
	li	s3, 0
	la	s4, latest
1:	ld	t0, 0(s4)
	fence	r, r
	rdtime	t1
	bgeu	t1, t0, 2f
	addi	s3, s3, 1
2:	amomaxu.d x0, t1, (s4)
	addi	s2, s2, -1
	bnez	s2, 1b

	mv	a0, s3
	mv	a1, s0
	slti	x0, x0, 0x7ff
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
latest:	.dword	0
finished: .word	0
