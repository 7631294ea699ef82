/* SPDX-License-Identifier: MIT */
/*
 * demoscript - what one thread of a demonstration does, step by step.
 *
 *   NAME:POLICY:PARAMETER:STEP[,STEP...]     e.g. p2:fifo:20:at=200000000,run=350000000
 *
 * PARAMETER is a priority, for deadline RUNTIME/PERIOD in ns, else 0. The host writes
 * the scripts; what each step means is in format/README.md.
 */
#ifndef DEMOSCRIPT_H
#define DEMOSCRIPT_H

#include <stdint.h>

#include "thread/policy.h"

#define DEMOSCRIPT_MAX_STEPS 24
#define DEMOSCRIPT_NAME      16
#define DEMOSCRIPT_LOCKS     4
#define DEMOSCRIPT_MAX_NS    INT64_C(20000000000) /* of any time: nobody waits longer */
#define DEMOSCRIPT_MAX_BYTES (INT64_C(8) << 20)
#define DEMOSCRIPT_MAX_LOOPS 10000

enum demo_op {
	DEMO_AT,     /* sleeps until a time since the start */
	DEMO_SLEEP,  /* sleeps for some time */
	DEMO_EVERY,  /* sleeps until the next multiple of a time since the start */
	DEMO_RUN,    /* computes for some CPU time */
	DEMO_UNTIL,  /* computes until a time since the start */
	DEMO_LOCK,   /* takes a mutex, by number */
	DEMO_UNLOCK, /* gives it back */
	DEMO_YIELD,  /* gives up the CPU; of deadline: until its next period */
	DEMO_TOUCH,  /* writes to each page of bytes mapped just before */
	DEMO_ALLOC,  /* writes to each page of bytes from malloc(), then frees them */
	DEMO_POOL, /* the same to bytes that were there and touched before the start */
	DEMO_LOOP, /* what follows until DEMO_NEXT, so often */
	DEMO_NEXT,
};

struct demo_step {
	enum demo_op op;
	int64_t arg; /* ns, bytes, a number of a mutex, or how often */
};

struct demo_script {
	char name[DEMOSCRIPT_NAME];
	struct policy policy;
	struct demo_step step[DEMOSCRIPT_MAX_STEPS];
	unsigned int steps;
};

/* Returns 0 or -EINVAL. */
int demoscript_parse(const char *text, struct demo_script *out);

#endif
