/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record - one thing that happened, in the ring as in the file: see format/plugin.md. */
#ifndef RECORD_H
#define RECORD_H

#include <stdint.h>

enum record_kind {
	RECORD_BLOCK = 1,      /* value: address of its first instruction */
	RECORD_INTERRUPTS = 2, /* value: 1 enabled, 0 not */
	RECORD_PREEMPT = 3,    /* value: the preemption count */
	RECORD_TASK = 4,       /* value: address of the current task */
	RECORD_MARK = 5,       /* value: latency in ns; its sequence number follows */
	RECORD_SEQUENCE = 6,
	RECORD_INTERRUPT = 7, /* value: its vector; its duration follows */
	RECORD_DURATION = 8,  /* value: ns, without interrupts inside */
	RECORD_NAME = 9,      /* value: 8 bytes of the task's name; twice after it */
	RECORD_PAUSE = 10,    /* the CPU executes nothing until its next block */
	RECORD_PRIORITY = 11, /* value: priority of the task before, of 32 bits: its
				 prio, and (normal_prio - prio) << 16 */
	RECORD_CHANGE = 12,   /* value: priority of the CPU's task from here on, and
				 the one until here, << 32 */
	RECORD_WOKEN = 13,    /* value: address of the task that the CPU wakes */
	RECORD_ASKED = 14, /* value: CPU that is asked for an interrupt: requests.h */
	/* value: address of a task; its name until here follows, and that from here on */
	RECORD_RENAMED = 15,
};

struct record {
	uint64_t stamp; /* kind << 56 | cpu << 48 | virtual ns by that CPU's time */
	uint64_t value;
};

#define RECORD_AT_MASK ((UINT64_C(1) << 48) - 1)

static inline struct record record_make(enum record_kind kind, unsigned int cpu,
					uint64_t at, uint64_t value)
{
	return (struct record){ (uint64_t)kind << 56 | (uint64_t)cpu << 48 | at,
				value };
}

static inline uint64_t record_at_ns(const struct record *r)
{
	return r->stamp & RECORD_AT_MASK;
}

static inline unsigned int record_cpu(const struct record *r)
{
	return r->stamp >> 48 & 0xff;
}

static inline unsigned int record_kind(const struct record *r)
{
	return (unsigned int)(r->stamp >> 56);
}

#endif
