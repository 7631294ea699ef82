/* SPDX-License-Identifier: MIT */
/* The whole test framework. A test is a function; a failed CHECK() ends the run. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond)                                                                    \
	do {                                                                           \
		if (!(cond)) {                                                         \
			fprintf(stderr, "%s:%d: %s: CHECK(%s) failed\n", __FILE__,     \
				__LINE__, __func__, #cond);                            \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* another malloc() and more stack: no counts of faults */
#else
#define SANITIZED 0
#endif

/* A task under a sanitizer needs more than the default. */
#define STACK_BYTES (SANITIZED ? (size_t)2 << 20 : 0)

#endif
