/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * requests - when a CPU is asked for an interrupt, and which CPU's instruction asked.
 *
 * All of QEMU's devices and interrupt controllers tell a CPU through one pointer in the
 * class of its accelerator's functions. Its place there is looked for: it is the word that
 * holds the exported function which counts instructions.
 */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <stdint.h>

/* Of a request that no instruction made: a timer of a device did. */
#define REQUESTS_BY_TIMER (UINT64_C(1) << 8)

/* Once there is a CPU. Each request goes to `told`: the CPU that asks, the time by its
 * clock, and the number of the CPU that is asked, maybe with REQUESTS_BY_TIMER: then the
 * first is the same. Returns NULL, or what this QEMU does otherwise. */
const char *requests_watch(void (*told)(unsigned int cpu, uint64_t at_ns,
					uint64_t asked));

#endif
