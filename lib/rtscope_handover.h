/* SPDX-License-Identifier: MIT */
/*
 * rtscope_handover - what real-time tasks pass on without locks: the latest value, a
 * queue, and a log.
 *
 * Every call of a task is wait-free: a fixed number of steps, no system call, no memory
 * is allocated. Copy this file and rtscope_handover.c; link with -pthread. C11 or C++11,
 * Linux, glibc or musl. Functions return 0 or -errno.
 */
#ifndef RTSCOPE_HANDOVER_H
#define RTSCOPE_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the latest value ------------------------------------------------------------- */

/*
 * One thread writes; each reader is one thread and has a number, from 0. A reader gets
 * the last value that was written as a whole, however often and late it reads. Each has
 * three buffers: one that is written, one that is read, one in the middle.
 */
struct rtsc_latest {
	char *storage;
	size_t size, stride;
	unsigned int readers;
	uint64_t written; /* the writer's */
};

/* Of storage for values of so many bytes; it needs no alignment. */
#define RTSC_LATEST_BYTES(size, readers)                                               \
	(((size) + 8 + 64) / 64 * 64 * 3 * (readers) + 128 * (size_t)(readers) + 64)

/* The storage is the caller's, and stays there. -EINVAL: it is too small. */
int rtsc_latest_init(struct rtsc_latest *latest, void *storage, size_t bytes,
		     size_t size, unsigned int readers);

/* Only by the writer. It copies the value once for each reader. */
void rtsc_latest_write(struct rtsc_latest *latest, const void *value);

/* Only by that reader. The number of the value, from 1; the same as the last time if
 * none was written since; 0, and nothing is copied, before the first. */
uint64_t rtsc_latest_read(struct rtsc_latest *latest, unsigned int reader, void *value);

/* --- a queue ---------------------------------------------------------------------- */

/* One thread pushes, one pops. A full queue drops what is pushed, and counts that. */
struct rtsc_queue {
	char *storage;
	size_t size;
	uint64_t mask;  /* records - 1 */
	char apart[64]; /* each side has its own cache line */
	uint64_t head;  /* pushed: the producer's */
	uint64_t dropped;
	uint64_t seen_tail; /* so that it seldom reads the other's line */
	char between[64];
	uint64_t tail; /* popped: the consumer's */
};

/* Room for the largest power of two of records that fits. -EINVAL: for none. */
int rtsc_queue_init(struct rtsc_queue *queue, void *storage, size_t bytes, size_t size);

/* False: it was full, and the record is dropped. */
bool rtsc_queue_push(struct rtsc_queue *queue, const void *record);

/* False: it is empty. */
bool rtsc_queue_pop(struct rtsc_queue *queue, void *record);

/* Since the beginning; from any thread. */
uint64_t rtsc_queue_dropped(const struct rtsc_queue *queue);

/* --- a log ------------------------------------------------------------------------ */

struct rtsc_log;

#define RTSC_LOG_ARGS 8

/* All zero: the defaults. */
struct rtsc_log_setup {
	const char *name; /* before each line; NULL: none */
	size_t records;   /* room: 1024, of 80 bytes each */
	int64_t every_ns; /* how often they are written: 10 ms */
	int fd;           /* where to; 0: standard error */
};

/*
 * Starts an ordinary thread that formats and writes what one task logs, with the time of
 * CLOCK_MONOTONIC: "12.000345678 control: took 81 us". Call it before memory is locked,
 * or after: it allocates here and never again.
 */
int rtsc_log_open(struct rtsc_log **out, const struct rtsc_log_setup *setup);

/*
 * Only by one task. As printf(): d i u x X o c f F e E g G a A p s % with their flags,
 * width, precision (no *) and length. The format and each text of %s have to live until
 * the log is closed: literals. At most RTSC_LOG_ARGS values. False: it was full, and the
 * message is dropped, which a line of the log then says.
 */
__attribute__((format(printf, 2, 3))) bool rtsc_log_print(struct rtsc_log *log,
							  const char *format, ...);

/* Messages dropped because it was full, and lines that could not be written. */
uint64_t rtsc_log_dropped(const struct rtsc_log *log);
uint64_t rtsc_log_unwritten(const struct rtsc_log *log);

/* Writes what is left, and ends the thread. No task may log any more. */
void rtsc_log_close(struct rtsc_log *log);

#ifdef __cplusplus
}
#endif
#endif
