/* SPDX-License-Identifier: MIT */
#include "watch/watchcalls.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define COUNT_OF(list) (sizeof(list) / sizeof(*(list)))

struct call {
	int number;
	const char *name;
};

#define CALL(name) { SYS_##name, #name }

/* They take the lock of the process's memory, which faults of all its threads need. */
static const struct call memory_calls[] = {
#ifdef SYS_mmap2
	CALL(mmap2),
#else
	CALL(mmap),
#endif
	CALL(munmap), CALL(mprotect), CALL(brk),      CALL(madvise),    CALL(mremap),
	CALL(mlock),  CALL(munlock),  CALL(mlockall), CALL(munlockall),
};

/* They may wait for a device, another program or the network; of futex and
 * clock_nanosleep only some, and epoll is how a thread should wait for many. */
static const struct call blocking_calls[] = {
	CALL(read),        CALL(write),  CALL(pread64),  CALL(pwrite64),
	CALL(readv),       CALL(writev), CALL(openat),   CALL(fsync),
	CALL(fdatasync),   CALL(sync),   CALL(ioctl),    CALL(ppoll),
	CALL(pselect6),    CALL(sendto), CALL(recvfrom), CALL(sendmsg),
	CALL(recvmsg),     CALL(accept), CALL(accept4),  CALL(connect),
	CALL(sched_yield), CALL(clone),  CALL(clone3),   CALL(execve),
	CALL(waitid),      CALL(flock),
#ifdef SYS_nanosleep
	CALL(nanosleep),
#endif
#ifdef SYS_open
	CALL(open),
#endif
#ifdef SYS_poll
	CALL(poll),
#endif
#ifdef SYS_select
	CALL(select),
#endif
#ifdef SYS_wait4
	CALL(wait4),
#endif
};

/* Their waits are for locks, and for conditions, which are no fault. */
static const struct call lock_calls[] = {
	CALL(futex),
#ifdef SYS_futex_time64
	CALL(futex_time64),
#endif
};

struct calls {
	const struct call *call;
	size_t count;
};

#define CALLS(table) { table, COUNT_OF(table) }

static const struct calls timed_calls[] = {
	CALLS(memory_calls),
	CALLS(blocking_calls),
	CALLS(lock_calls),
};

#define MOST_CALLS 64
#define IN_A_ROW   4 /* so many comparisons are no more than a step of the search */

struct filter_text {
	char *text;
	size_t size, used; /* more than size: it has no room */
};

static void put(struct filter_text *f, const char *format, int number)
{
	const bool room = f->used < f->size;

	f->used += (size_t)snprintf(room ? f->text + f->used : NULL,
				    room ? f->size - f->used : 0, format, number);
}

static void put_search(struct filter_text *f, const int *id, size_t count)
{
	const size_t half = count / 2;

	if (count <= IN_A_ROW) {
		for (size_t i = 0; i < count; i++)
			put(f, i ? " || id == %d" : "id == %d", id[i]);
		return;
	}
	put(f, "(id < %d && (", id[half]);
	put_search(f, id, half);
	put(f, ")) || (id >= %d && (", id[half]);
	put_search(f, id + half, count - half);
	put(f, "))", 0);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* First the sleep of each cycle: the kernel compares its end while the thread wakes. The
 * others are searched for, since one comparison after the other would take long. */
static void filter_calls(char *filter, size_t size, const struct calls *some,
			 size_t count)
{
	struct filter_text f = { filter, size, 0 };
	int id[MOST_CALLS];
	size_t ids = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < some[i].count && ids < MOST_CALLS; j++)
			id[ids++] = some[i].call[j].number;
	qsort(id, ids, sizeof(*id), by_number);
#ifdef SYS_clock_nanosleep
	put(&f, "id != %d && (", SYS_clock_nanosleep);
#else
	put(&f, "(", 0);
#endif
	put_search(&f, id, ids);
	put(&f, ")", 0);
}

void watchcalls_filter_memory(char *filter, size_t size)
{
	filter_calls(filter, size, &timed_calls[0], 1);
}

void watchcalls_filter_blocking(char *filter, size_t size)
{
	filter_calls(filter, size, &timed_calls[1], 1);
}

void watchcalls_filter_timed(char *filter, size_t size)
{
	filter_calls(filter, size, timed_calls, COUNT_OF(timed_calls));
}

static const char *name_in(const struct call *calls, size_t count, long number)
{
	for (size_t i = 0; i < count; i++)
		if (calls[i].number == number)
			return calls[i].name;
	return NULL;
}

#define FUTEX_COMMANDS 127 /* the rest are options: linux/futex.h */
#define WAIT           0
#define WAIT_BITSET    9
#define CONTENDED      2                    /* of glibc and of Rust */
#define HAS_WAITERS    UINT64_C(0x80000000) /* of musl, beside the owner's TID */

enum timeline_kind watchcalls_timed(long call, const uint64_t args[3],
				    const char **name)
{
	const uint64_t command = args[1] & FUTEX_COMMANDS;

	*name = name_in(blocking_calls, COUNT_OF(blocking_calls), call);
	if (*name)
		return TIMED_BLOCKING_CALL;
	*name = name_in(memory_calls, COUNT_OF(memory_calls), call);
	if (*name)
		return TIMED_MEMORY_CALL;
	*name = name_in(lock_calls, COUNT_OF(lock_calls), call);
	if (*name && (command == WAIT || command == WAIT_BITSET) &&
	    (args[2] == CONTENDED || args[2] & HAS_WAITERS))
		return TIMED_LOCK_WAIT;
	return TIMED_NOT;
}
