/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest whose tasks get names: no firmware and no kernel, on QEMU's riscv64 `virt`
 * machine. In supervisor mode and the upper half of the addresses, CPU 0
 *
 *   switches to the task `first`, gives it the name "one" twice, and marks sequence
 *   number 1;
 *   spins SPINS times, and marks 2;
 *   spins, gives it the name "two", and marks 3;
 *   switches to the task `second`, gives `first` the name "three" and itself the name
 *   "four", spins, switches to `first`, and marks 4;
 *   switches the machine off.
 */
#define FINISHER      0x100000
#define FINISHER_PASS 0x5555
#define UPPER_HALF    0xffffffff00000000
#define PTE_ALL       0xcf /* valid, read, write, execute, accessed, dirty */
#define PTE_OF_RAM    (0x80000000 >> 2 | PTE_ALL)

	.option norvc
	.macro	mark number
	li	a0, LATENCY_NS
	li	a1, \number
	slti	x0, x0, 0x7ff
	.endm
	.macro	spin
	li	t0, SPINS
1:	addi	t0, t0, -1
	bnez	t0, 1b
	.endm
	.macro	switch task
	la	tp, \task
	call	switched
	.endm
	.macro	rename task, name
	la	a0, \task
	la	a1, \name
	call	rename
	.endm

	.globl	_start
_start:
	li	t0, -1
	csrw	pmpaddr0, t0
	li	t0, 0x1f
	csrw	pmpcfg0, t0
	la	t0, pages
	srli	t0, t0, 12
	li	t1, 8 << 60 /* Sv39 */
	or	t0, t0, t1
	csrw	satp, t0
	sfence.vma
	li	t0, 1 << 11 /* previous mode: supervisor */
	csrs	mstatus, t0
	la	t0, supervisor
	li	t1, UPPER_HALF
	or	t0, t0, t1
	csrw	mepc, t0
	mret

	.align	2
supervisor:
	switch	first
	rename	first, one
	rename	first, one
	mark	1
	spin
	mark	2
	spin
	rename	first, two
	mark	3
	switch	second
	rename	first, three
	rename	second, four
	spin
	switch	first
	mark	4
	li	t0, FINISHER
	li	t1, FINISHER_PASS
	sw	t1, 0(t0)
	j	.

	.globl	switched
switched:
	ret

	.globl	rename
rename: /* the name lies behind four priorities and two words */
	ld	t0, 0(a1)
	sd	t0, 32(a0)
	ld	t0, 8(a1)
	sd	t0, 40(a0)
	ret

	.align	12
pages:	/* gigabytes: devices and RAM as they are, RAM again in the upper half */
	.dword	PTE_ALL, 0, PTE_OF_RAM
	.zero	(510 - 3) * 8
	.dword	PTE_OF_RAM, 0
	.globl	first
first:	.dword	0, 0
	.word	120, 120, 120, 0
	.asciz	"swapper/0"
	.zero	6
	.globl	second
second:	.dword	0, 0
	.word	49, 120, 49, 50
	.asciz	"other"
	.zero	10
one:	.asciz	"one"
	.ascii	"what is behind"
	.align	3
two:	.asciz	"two"
	.align	3
	.zero	8
three:	.asciz	"three"
	.align	3
	.zero	8
four:	.asciz	"four"
	.align	3
	.zero	8
