/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fnv - the sum FNV-1a, of 64-bit words. */
#ifndef FNV_H
#define FNV_H

#include <stdint.h>

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)

static inline uint64_t fnv_add(uint64_t sum, uint64_t word)
{
	return (sum ^ word) * UINT64_C(0x100000001b3);
}

#endif
