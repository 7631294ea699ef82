/* SPDX-License-Identifier: MIT */
/*
 * rawcall - the system call of the sampling loop, without libc around it.
 *
 * libc's syscall() reads six variable arguments, moves them and sets errno: 80
 * instructions on x86-64 for each sample, more than the rest of the loop. This is the
 * one place that knows architectures; one that is not here goes through libc.
 */
#ifndef RAWCALL_H
#define RAWCALL_H

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns what the kernel returns: -errno on failure. */
static inline long rawcall4(long number, long a, long b, const void *c, void *d)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = (long)d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = (long)c;
	register long x3 __asm__("x3") = (long)d;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
			 : "memory");
	return x0;
#elif defined(__arm__) && !defined(__thumb__) /* Thumb may need r7 for its frames */
	register long r7 __asm__("r7") = number;
	register long r0 __asm__("r0") = a;
	register long r1 __asm__("r1") = b;
	register long r2 __asm__("r2") = (long)c;
	register long r3 __asm__("r3") = (long)d;

	__asm__ volatile("svc 0"
			 : "+r"(r0)
			 : "r"(r7), "r"(r1), "r"(r2), "r"(r3)
			 : "memory");
	return r0;
#elif defined(__riscv)
	register long a7 __asm__("a7") = number;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = b;
	register long a2 __asm__("a2") = (long)c;
	register long a3 __asm__("a3") = (long)d;

	__asm__ volatile("ecall"
			 : "+r"(a0)
			 : "r"(a7), "r"(a1), "r"(a2), "r"(a3)
			 : "memory");
	return a0;
#else
	long result = syscall(number, a, b, c, d);

	return result == -1 ? -errno : result;
#endif
}

/* The same with five arguments: what message queues take. */
static inline long rawcall5(long number, long a, const void *b, long c, long d, void *e)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = (long)e;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = (long)b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = (long)e;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
#elif defined(__riscv)
	register long a7 __asm__("a7") = number;
	register long a0 __asm__("a0") = a;
	register long a1 __asm__("a1") = (long)b;
	register long a2 __asm__("a2") = c;
	register long a3 __asm__("a3") = d;
	register long a4 __asm__("a4") = (long)e;

	__asm__ volatile("ecall"
			 : "+r"(a0)
			 : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4)
			 : "memory");
	return a0;
#else
	long result = syscall(number, a, b, c, d, e);

	return result == -1 ? -errno : result;
#endif
}

#endif
