/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * As much of a kernel as has sections: no firmware, one CPU of QEMU's riscv64 `virt`
 * machine, in supervisor mode and in the upper half of the addresses. In order
 *
 *   the idle task comes by do_idle;
 *   task A marks a wake-up, and so is the measuring thread; it is switched to B;
 *   B disables preemption for POID spins, with an interrupt of IRQ spins inside;
 *   a switch is due for PAIE spins;
 *   B is switched to A, spinning PSD times before __schedule and ST times in it;
 *   A spins BACK times and goes to sleep;
 *   the idle task, which never enables preemption, spins for long;
 *   A spins for long, is preempted, and goes to sleep at once when it is back;
 *   A spins for long, does not sleep any more, and exits;
 *   another task in the place of A does the same, and switches the machine off.
 *
 * A spin is two instructions. The interrupt is one as far as the plugin can tell: the
 * kernel's entry, and its bits of the preemption count.
 */
#define FINISHER      0x100000
#define FINISHER_PASS 0x5555
#define UPPER_HALF    0xffffffff00000000
#define PTE_ALL       0xcf /* valid, read, write, execute, accessed, dirty */
#define PTE_OF_RAM    (0x80000000 >> 2 | PTE_ALL)
#define DUE           8 /* TIF_NEED_RESCHED */
#define HARD          0x10000
#define LONG          9000

	.macro	next_block
	j	.Lblock\@
.Lblock\@:
	.endm

	.macro	spin	times
	li	t0, \times
.Lspin\@:
	addi	t0, t0, -1
	bnez	t0, .Lspin\@
	.endm

	.macro	count	value
	li	t0, \value
	sw	t0, 8(tp)
	next_block
	.endm

	.macro	switch_to	task
	la	s1, \task
	li	s2, 0
	count	1
	spin	PSD
	jal	schedule
	.endm

	.option norvc
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
	la	tp, idle_task
	csrsi	sstatus, 2
	count	1
	jal	do_idle
	la	tp, task_a
	count	0
	li	a0, 1000
	li	a1, 7
	slti	x0, x0, 0x7ff
	switch_to task_b

	count	1
	csrw	sscratch, tp
	csrci	sstatus, 2
	next_block
	csrrw	tp, sscratch, tp
	count	HARD + 1
	spin	IRQ
	count	1
	csrsi	sstatus, 2
	next_block
	spin	POID
	count	0

	li	t0, DUE
	sd	t0, 0(tp)
	count	0
	spin	PAIE
	sd	zero, 0(tp)
	switch_to task_a
	spin	BACK
	jal	do_nanosleep

	la	s1, idle_task
	li	s2, 1
	count	1
	jal	schedule
	jal	do_idle
	spin	LONG
	la	s1, task_a
	li	s2, 0
	jal	schedule

	spin	LONG
	switch_to task_b
	switch_to task_a
	jal	do_nanosleep

	spin	LONG
	switch_to task_b
	switch_to task_a
	jal	do_exit
	spin	LONG
	jal	do_nanosleep
	switch_to task_b
	switch_to task_a
	li	t0, FINISHER
	li	t1, FINISHER_PASS
	sw	t1, 0(t0)
	j	.

	.org	_start + 0x800
do_idle:
	ret

	.org	_start + 0x880
do_nanosleep:
	ret

	.org	_start + 0x900
do_exit:
	ret

	.org	_start + 0xa00
schedule: /* to the task s1, with the count s2 in the end */
	csrci	sstatus, 2
	next_block
	spin	ST
	mv	tp, s1
	count	1
	csrsi	sstatus, 2
	next_block
	sw	s2, 8(tp)
	ret

	.align	12
pages:	/* gigabytes: devices and RAM as they are, RAM again in the upper half */
	.dword	PTE_ALL, 0, PTE_OF_RAM
	.zero	(510 - 3) * 8
	.dword	PTE_OF_RAM, 0
idle_task: .dword 0, 0
task_a:	.dword	0, 0
task_b:	.dword	0, 0
