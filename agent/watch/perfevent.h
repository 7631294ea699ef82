/* SPDX-License-Identifier: MIT */
/*
 * perfevent - counts what one thread does, and copies its stack where it does it.
 *
 * Each kind of event has a counter, which is exact, and a sampler, which copies a bounded
 * number of stacks: a storm of events is counted, not copied. Tracepoints, probes and
 * what comes in no storm have one event for both, since each costs at each switch of the
 * thread. Samplers of a thread share a ring in memory. Descriptors end with this process,
 * also by SIGKILL.
 */
#ifndef PERFEVENT_H
#define PERFEVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERFEVENT_STACK_BYTES 16384
#define PERFEVENT_MAX_KINDS   32
#define PERFEVENT_OWN         (-1) /* not of a CPU: of the thread itself */
#define PERFEVENT_FILTER      4096 /* the kernel takes a page */

/* What is counted: a software event, a tracepoint, or a probe where the program calls a
 * function. */
struct perfevent_kind {
	const char *name;
	uint32_t type;      /* of perf_event_attr */
	uint64_t config;    /* of it */
	const char *path;   /* of a probe: the file with the function */
	uint64_t offset;    /* in that file */
	const char *filter; /* of a tracepoint; NULL: none */
	/* the tracepoint that tells the same where events are of CPUs, with the thread
	 * in its field `pid`; 0: none */
	uint64_t of_cpu;
	bool is_call;   /* it has the arguments of a system call */
	bool sampled;   /* copies stacks, else only counts */
	bool by_hand;   /* see perfevent_grant() */
	bool user_only; /* the kernel lets us see no more */
};

struct perfevent {
	int counter_fd;
	int sampler_fd; /* -1: none */
	uint64_t id;    /* of the sampler */
	uint64_t granted;
	bool running;  /* the sampler */
	bool is_probe; /* slow to close */
	bool both;     /* one event counts, and copies stacks for as long as it is to */
};

struct perfring {
	void *map; /* NULL: none */
	int fd;    /* of the event that it was made for */
	bool own;  /* that event is the ring's own, and counts nothing */
	size_t map_bytes;
	uint64_t tail;
	uint64_t end; /* of what was there when the look began */
	bool looking;
	uint64_t lost;  /* records that found the ring full */
	uint64_t noted; /* of these, those that the reader knows of */
};

/* One sample as it left the ring; the pointers are into the caller's buffer. */
struct perfsample {
	uint64_t id;
	int64_t t_ns;
	uint64_t address; /* of a page fault */
	uint64_t ip;
	uint64_t abi;             /* of the registers: 0 none, 1 32-bit, 2 64-bit */
	const char *program;      /* that the thread executed then; NULL: an event */
	const unsigned char *raw; /* the fields of a tracepoint */
	const unsigned char *regs, *stack;
	size_t raw_bytes, regs_bytes, stack_bytes;
};

/* Each thread has a descriptor for each counter and sampler: as many as may be. */
void perfevent_raise_descriptors(void);

/* The type number of the PMU of probes, or -errno: -ENOENT where the kernel has none. */
int perfevent_probe_type(void);

/* Opens counter and sampler of one thread, both stopped. Returns 0 or -errno. Where only
 * user space may be watched, kind->user_only is set. They are the thread's own, which
 * costs it some 600 instructions each time it gets a CPU, or, with a `cpu` other than
 * PERFEVENT_OWN, those of a CPU, which compares each event with the thread: only if
 * perfevent_can_be_of_cpu(), and by the TID that the kernel knows. */
int perfevent_open(struct perfevent *e, struct perfevent_kind *kind, int tid, int cpu);

/* Whether a filter can tell whose the event is. */
bool perfevent_can_be_of_cpu(const struct perfevent_kind *kind);

/* Opens an event of which each time leaves a short record with the fields of its
 * tracepoint, of a thread, or with tid -1 of a CPU. Stopped. Returns the descriptor or
 * -errno. */
enum perfevent_more {
	PERFEVENT_NO_MORE,
	PERFEVENT_SWITCHES, /* a record when the thread gets a CPU, too */
	PERFEVENT_MODE,     /* each has the thread's mode, and where it is */
};
int perfevent_open_flow(uint32_t type, uint64_t config, int tid, int cpu,
			enum perfevent_more more);

/* Adds to a filter that the event is one of this thread. Returns 0, or -E2BIG. */
int perfevent_filter_thread(char *out, size_t size, int tid, const char *filter);

/* Lets the counter count. Returns 0 or -errno. */
int perfevent_count_on(struct perfevent *e);

/* Makes the ring of a CPU, which outlives the events that join it. Returns 0 or -errno. */
int perfring_make(struct perfring *r, int cpu, size_t bytes);

/* Makes the ring of a thread, with a record when it executes a program. Returns 0 or
 * -errno. */
int perfring_make_of_thread(struct perfring *r, int tid, size_t bytes);

/* Makes the ring of a thread for its first sampler, or joins another one to it.
 * Of 2^n bytes, a page or more. Returns 0 or -errno. */
int perfring_join(struct perfring *r, struct perfevent *e, size_t bytes);

/* Lets the sampler take so many more samples; the kernel then switches it off. Not for
 * tracepoints and probes: Linux 6.18 does not switch those on again. Returns 0 or -errno. */
int perfevent_grant(struct perfevent *e, unsigned int samples);

/* Switches the sampler on, for as many samples as the ring has room for, or off; where
 * one event does both, one more sample may come. */
int perfevent_run(struct perfevent *e, bool running);

/* How often it happened so far; -1 if it cannot be read. */
int64_t perfevent_count(const struct perfevent *e);

/* Takes the next record of any kind but those that count what was lost, with its head.
 * True, or false after the last that was there when the look began: with the first call,
 * or the first after a false; a program may make them faster than they are taken. `buffer`
 * has room for 64 KiB. */
bool perfring_next(struct perfring *r, unsigned char *buffer);

/* Takes the next sample, or what the thread executed. True, or false if there is none; `buffer` has room for one
 * record of the kernel, 64 KiB. */
bool perfring_take(struct perfring *r, unsigned char *buffer, struct perfsample *out);

/* Switches it off, since another process may have it still; lastcloser closes it. */
void perfevent_end(int fd);

void perfevent_close(struct perfevent *e);
void perfring_close(struct perfring *r);

#endif
