/* SPDX-License-Identifier: MIT */
/* usage - what the kernel accounts to the calling thread. */
#ifndef USAGE_H
#define USAGE_H

#include <stdint.h>

struct usage {
	int64_t minor_faults, major_faults;
	int64_t voluntary_switches, involuntary_switches;
	int64_t migrations; /* -1: this kernel does not tell */
	int64_t cpu_time_ns;
};

struct usage usage_now(void);

/* What has been added since before. */
struct usage usage_since(const struct usage *before);

/* VmLck of this process in KB. */
int64_t usage_locked_kb(void);

#endif
