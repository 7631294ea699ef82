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

#include "finish.S"

	.align	3
latest:	.dword	0
