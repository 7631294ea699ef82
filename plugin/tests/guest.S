/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The smallest guest with something to see: no firmware and no kernel, on QEMU's riscv64
 * `virt` machine. In order, CPU 0
 *
 *   hands CPU 1 a flag ROUNDS times, waits until it is taken, and marks how long it took;
 *   spins SPINS times (two instructions each);
 *   goes to supervisor mode and to the upper half of the addresses, as a kernel is;
 *   enables interrupts, raises the preemption count to 3, disables interrupts, and
 *   begins as the kernel's entry does;
 *   spins SPINS_OFF times, if that is any;
 *   marks latency LATENCY_NS of sequence number 7, and switches the machine off.
 */
#define FINISHER       0x100000
#define FINISHER_PASS  0x5555
#define MTIMECMP       0x2004000
#define NS_PER_TIME    100
#define TIMER_AFTER    40000 /* 4 ms */
#define UPPER_HALF     0xffffffff00000000
#define PTE_ALL        0xcf /* valid, read, write, execute, accessed, dirty */
#define PTE_OF_RAM     (0x80000000 >> 2 | PTE_ALL)

	.option norvc
	.globl	_start
_start:
	csrr	t0, mhartid
	bnez	t0, partner

	li	s0, MTIMECMP
	la	s1, flag
	li	s2, ROUNDS
	li	s3, 0
hand_over:
	beq	s3, s2, spin
	addi	s3, s3, 1
	/* A timer that interrupts nobody: unbounded quanta depend on the next one. */
	rdtime	s4
	li	t1, TIMER_AFTER
	add	t0, s4, t1
	sd	t0, 0(s0)
	li	t0, 1
	sw	t0, 0(s1)
1:	lw	t0, 0(s1)
	bnez	t0, 1b
	rdtime	a0
	sub	a0, a0, s4
	li	t0, NS_PER_TIME
	mul	a0, a0, t0
	mv	a1, s3
	slti	x0, x0, 0x7ff
	j	hand_over

spin:
	li	t0, SPINS
1:	addi	t0, t0, -1
	bnez	t0, 1b

	/* Physical memory protection: everything is allowed. */
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
	.globl	supervisor
supervisor:
	la	tp, task
	mv	a0, tp /* as if it was to wake that task, behind `switched` */
	csrw	sscratch, tp
	csrsi	sstatus, 2
	j	1f
1:	li	t0, 3
	sw	t0, 8(tp)
	j	1f
1:	csrci	sstatus, 2
	csrrw	tp, sscratch, tp
#if SPINS_OFF
	li	t0, SPINS_OFF
1:	addi	t0, t0, -1
	bnez	t0, 1b
#endif
	j	switched
	.globl	switched
switched: /* as if the task had just begun */
	li	a0, LATENCY_NS
	li	a1, 7
	slti	x0, x0, 0x7ff
	li	t0, FINISHER
	li	t1, FINISHER_PASS
	sw	t1, 0(t0)
	j	.

/* CPU 1 never rests. */
partner:
	la	s1, flag
1:	lw	t0, 0(s1)
	beqz	t0, 1b
	sw	zero, 0(s1)
	j	1b

	.align	12
pages:	/* gigabytes: devices and RAM as they are, RAM again in the upper half */
	.dword	PTE_ALL, 0, PTE_OF_RAM
	.zero	(510 - 3) * 8
	.dword	PTE_OF_RAM, 0
flag:	.dword	0
	.globl	task
task:	.dword	0, 0
	.word	120, 120, 120, 0
	.asciz	"swapper/0"
	.zero	6
