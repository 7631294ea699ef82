/* SPDX-License-Identifier: MIT */
/*
 * watchcalls - the system calls that cost a thread time, and the kernel's filters that
 * let just them through. Pure.
 */
#ifndef WATCHCALLS_H
#define WATCHCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch/timeline.h"

#define WATCHCALLS_ARGS 6

/* Whose numbers a call has: of the mode that the thread made it in. */
enum watchcalls_abi {
	CALLS_X86_64,
	CALLS_GENERIC, /* arm64 and riscv64 */
	CALLS_ARM,
	CALLS_I386,
	CALLS_X32, /* they have bit 30 */
	WATCHCALLS_ABIS
};

/* Of the architecture that the agent was compiled for. */
enum watchcalls_abi watchcalls_own(void);

/* Of a program: `elf` are the first bytes of its file. Without a known head: our own. */
#define WATCHCALLS_HEAD 20
enum watchcalls_abi watchcalls_of_program(const unsigned char elf[WATCHCALLS_HEAD]);

/* Of a call: whether the thread was in a mode of 32 bits, or entered the kernel by int
 * 0x80. */
enum watchcalls_abi watchcalls_of_call(bool narrow, long number);

/* Of the calls that take the lock of the process's memory, and of those that may wait.
 * False: it has no room. */
bool watchcalls_filter_memory(char *filter, size_t size, enum watchcalls_abi abi);
bool watchcalls_filter_blocking(char *filter, size_t size, enum watchcalls_abi abi);

/* The filter of the system calls that are timed, from their entry to their return. */
bool watchcalls_filter_timed(char *filter, size_t size, enum watchcalls_abi abi);

/* Of the calls that wait for a word of memory or wake others of it: where a kernel has no
 * tracepoint of that call alone, as for programs of 32 bits under one of 64. */
bool watchcalls_filter_words(char *filter, size_t size, enum watchcalls_abi abi);

enum watchcalls_descriptor {
	DESCRIPTOR_WAITS,
	DESCRIPTOR_NEVER_WAITS, /* it has O_NONBLOCK and is of no file, directory or disk */
	DESCRIPTOR_OF_FILE,     /* it waits, whatever its flags are */
	DESCRIPTOR_OF_EVENTS, /* of a timer or of events: it never waits */
	DESCRIPTOR_SETTABLE,  /* the same, of a timer set to a time of CLOCK_REALTIME */
	DESCRIPTOR_GONE,      /* closed since, or not to be seen: it is not known */
};

/* What is known of the process that makes a call. */
struct watchcalls_process {
	void *of;
	enum watchcalls_descriptor (*descriptor)(void *of, int fd);
	/* Copies from its memory, as the call was made; false: it cannot be read. NULL:
	 * it is not known, and the record is unsure. */
	bool (*copy)(void *of, uint64_t address, void *to, size_t size);
	enum watchcalls_abi abi; /* of this call */
};

/* Fills in what a record of an entry says of the call; false for one that is not timed. */
bool watchcalls_read(long number, const uint64_t args[WATCHCALLS_ARGS],
		     const struct watchcalls_process *process,
		     struct timeline_record *out);

#endif
