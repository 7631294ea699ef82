/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * As much of a kernel as a program is seen by: no firmware, one CPU of QEMU's riscv64
 * `virt` machine, in supervisor mode and in the upper half of the addresses; the program
 * is in the lower half. In order
 *
 *   the shell becomes the program, by the marker, and executes another file;
 *   it has a page fault, makes a thread, and goes to sleep in a call;
 *   a timer wakes it: that was due at DUE by a clock that is 10 ns ahead;
 *   another task is woken, by nothing that is the timer's;
 *   it goes on behind its call, calls a function of its own, one that calls that too,
 *   and one that goes on in it, and is preempted;
 *   it goes on and exits with 5 << 8.
 *
 * With ASKS it sleeps three times more before, until a time that crosses two pages of the
 * program which are not beside each other in memory; until one at that address with bits
 * that none has; and until one where nothing is.
 *
 * With WRONG a page fault gives an address that is not in its memory area; the machine
 * switches itself off all the same.
 */
#define FINISHER      0x100000
#define FINISHER_PASS 0x5555
#define UPPER_HALF    0xffffffff00000000
#define PTE_ALL       0xcf /* valid, read, write, execute, accessed, dirty */
#define PTE_OF_RAM    (0x80000000 >> 2 | PTE_ALL)
#define TO_PROGRAM    0x40000000 /* from where RAM is in the lower half */
#define OWN_PAGES     0x100000000 /* where two pages are that only the program may read */
#define NO_ADDRESS    (1 << 46)  /* a bit beyond those of Sv39 */
#define PTE_TABLE     0x01
#define PTE_PROGRAM   0xdf /* PTE_ALL, and of a program */
#define ON_RQ         48
#define STATE         44

	.macro	calls	function
	jal	\function
	.endm

	/* as a program does, through the kernel's entry: to the upper half and back */
	.macro	into_kernel
	la	t0, 1f
	li	t1, UPPER_HALF + TO_PROGRAM
	add	t0, t0, t1
	jr	t0
1:
	.endm

	/* clock_nanosleep until the time at an address */
	.macro	asks	address
	li	t0, \address
	sd	t0, 96(s0)
	li	t0, 115
	sd	t0, 136(s0)
	mv	a0, s0
	calls	do_trap_ecall_u
	.endm

	.macro	into_program
	la	t0, 1f
	li	t1, UPPER_HALF + TO_PROGRAM
	sub	t0, t0, t1
	jr	t0
1:
	.endm

	/* `to` comes, `from` goes with this on_rq and state */
	.macro	switch_to	to, from, on_rq, state
	la	a0, \from
	li	t0, \on_rq
	sw	t0, ON_RQ(a0)
	li	t0, \state
	sw	t0, STATE(a0)
	la	tp, \to
	jal	finish_task_switch
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
	la	sp, stack
	la	s0, registers
	la	s2, sleeper
	switch_to shell, idle, 1, 0

	li	a0, -1
	slti	x0, x0, 0x7ff /* the marker of a program */
	la	t0, behind_exec
	li	t1, UPPER_HALF + TO_PROGRAM
	sub	t0, t0, t1
	addi	t0, t0, -4
	sd	t0, 0(s0) /* epc: of the call itself */
	li	t0, 221
	sd	t0, 136(s0)
	mv	a0, s0
	calls	do_trap_ecall_u
	la	a0, shell
	la	a1, name
	calls	set_task_comm
	la	t0, behind_exec
	li	t1, UPPER_HALF + TO_PROGRAM
	sub	t0, t0, t1
	jr	t0
behind_exec:
	nop
	into_kernel
	la	a0, area
	li	a1, 0x1234 + WRONG
	li	a2, 1
	li	a3, 0
	calls	handle_mm_fault
	la	a0, child
	calls	wake_up_new_task
#ifdef ASKS
	la	t0, tables
	li	t1, UPPER_HALF
	sub	t0, t0, t1
	srli	t0, t0, 2 /* as an entry has its number */
	li	t1, 4096 >> 2
	la	t2, pages
	ori	t3, t0, PTE_TABLE
	sd	t3, 4 * 8(t2)
	la	t2, tables
	add	t0, t0, t1
	ori	t3, t0, PTE_TABLE
	sd	t3, 0(t2)
	li	t3, 4096
	add	t2, t2, t3
	add	t0, t0, t1
	ori	t3, t0, PTE_PROGRAM
	sd	t3, 8(t2)
	add	t0, t0, t1
	ori	t3, t0, PTE_PROGRAM
	sd	t3, 0(t2)
	sfence.vma
	asks	OWN_PAGES + 4096 - 4
	asks	OWN_PAGES + 4096 - 4 + NO_ADDRESS
	asks	OWN_PAGES + 2 * 4096
#endif

	la	t0, behind_sleep
	li	t1, UPPER_HALF + TO_PROGRAM
	sub	t0, t0, t1
	addi	t0, t0, -4
	sd	t0, 0(s0)
	li	t0, 101
	sd	t0, 136(s0)
	mv	a0, s0
	calls	do_trap_ecall_u
	switch_to idle, shell, 0, 1

	li	t0, 0x10000 /* an interrupt */
	sw	t0, 8(tp)
	mv	a0, s2
	calls	hrtimer_wakeup
	sw	zero, 8(tp)
	la	a0, other
	calls	try_to_wake_up

	switch_to shell, idle, 1, 0
	la	t0, behind_sleep
	li	t1, UPPER_HALF + TO_PROGRAM
	sub	t0, t0, t1
	li	a0, 0
	jr	t0
behind_sleep:
	nop
	calls	used
	calls	outer
	calls	jumper
	into_kernel
	switch_to other, shell, 1, 0
	switch_to shell, other, 1, 0
	into_program
	nop
	into_kernel
	li	a0, 5 << 8
	calls	do_exit
	switch_to idle, shell, 0, 128
	li	t0, FINISHER
	li	t1, FINISHER_PASS
	sw	t1, 0(t0)
	j	.

	.macro	function	name, at
	.org	_start + \at
\name:
	.endm

	function try_to_wake_up, 0x800
	ret
	function ttwu_do_activate, 0x810
	ret
	function finish_task_switch, 0x820
	ret
	function hrtimer_wakeup, 0x830
	mv	s1, ra
	addi	sp, sp, -16
	ld	a0, 64(a0)
	mv	s3, a0
	calls	try_to_wake_up
	mv	a1, s3
	calls	ttwu_do_activate
	addi	sp, sp, 16
	mv	ra, s1
	ret
	function wake_up_new_task, 0x880
	ret
	function set_task_comm, 0x890
	ret
	function do_exit, 0x8a0
	ret
	function do_trap_ecall_u, 0x8b0
	ret
	function handle_mm_fault, 0x8c0
	ret
	function used, 0x8d0
	li	a0, 21
	ret
	function outer, 0x8e0
	mv	s4, ra
	calls	used
	mv	ra, s4
	li	a0, 22
	ret
	function jumper, 0x900
	j	used

	.macro	task	name, number, process, called
\name:	.dword	0, 0
	.word	\number, \process
	.asciz	"\called"
	.org	\name + 40
	.word	120, 0, 1, 0, 0, 0 /* prio, state, on_rq, delayed */
	.org	\name + 1024
	.endm

#ifdef ASKS
	.align	12
tables:	.zero	2 * 4096
	/* the second page of the program, and the first one behind it */
	.dword	0x0000000700000000 /* the upper half of the seconds, and 7 ns */
	.org	tables + 4 * 4096 - 4
	.word	2 /* seconds */
	.word	0x99, 0x99 /* of no page of the program */
#endif

	.align	12
pages:	/* gigabytes: devices, RAM for the program, RAM as it is, and in the upper half */
	.dword	PTE_ALL, PTE_OF_RAM, PTE_OF_RAM
	.zero	(510 - 3) * 8
	.dword	PTE_OF_RAM, 0
name:	.asciz	"program"
	.org	name + 16
	task	idle, 0, 0, swapper
	task	shell, 7, 7, shell
	task	child, 8, 7, shell
	task	other, 9, 9, other
registers:
	.zero	272
	.dword	8, 0
sleeper: /* a timer: expires at 24, function at 40, clock at 48; its task at 64 */
	.zero	24
	.dword	DUE + 10, 0
	.dword	hrtimer_wakeup + UPPER_HALF
	.dword	clock + UPPER_HALF, 0
	.dword	shell + UPPER_HALF
clock:	.dword	10 /* ahead of the counter */
keeper:	.dword	0, 0, 0
	.word	1, 0 /* mult, shift */
	.dword	0, 0
area:	.dword	0x1000, 0x2000
	.zero	1024
stack:	.dword	0
