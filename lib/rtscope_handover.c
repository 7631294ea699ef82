/* SPDX-License-Identifier: MIT */
/*
 * rtscope_handover - see rtscope_handover.h. Each atomic names the one that it pairs
 * with; all else is of one thread.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "rtscope_handover.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE        64 /* bytes of a cache line, or a part of one */
#define FRESH       4u /* in `middle`: the reader has not taken it yet */
#define INDEX       3u
#define LOG_RECORDS 1024
#define LOG_NS      INT64_C(10000000)
#define TEXT_BYTES  512

/* gcc and clang have the __atomic builtins; C11's atomics are no C++. */
#if __GCC_ATOMIC_LLONG_LOCK_FREE != 2
#error "a task would take a hidden lock for each 64-bit counter: compile for ARMv7 or later"
#endif

/* --- the latest value ------------------------------------------------------------- */

/* Of one reader; each side has a cache line of its own. */
struct side {
	uint32_t middle; /* shared: the buffer between, and FRESH */
	uint32_t back;   /* the writer's */
	char apart[LINE - 8];
	uint32_t front; /* the reader's */
	char end[LINE - 4];
};

typedef char side_is_its_size[sizeof(struct side) == 128 ? 1 : -1];

static struct side *side_of(const struct rtsc_latest *l, unsigned int reader)
{
	return (struct side *)(void *)l->storage + reader;
}

static char *buffer_of(const struct rtsc_latest *l, unsigned int reader, uint32_t index)
{
	return l->storage + l->readers * sizeof(struct side) +
	       ((size_t)reader * 3 + index) * l->stride;
}

int rtsc_latest_init(struct rtsc_latest *l, void *storage, size_t bytes, size_t size,
		     unsigned int readers)
{
	const size_t skip = (LINE - (uintptr_t)storage % LINE) % LINE;

	if (!size || !readers || bytes < RTSC_LATEST_BYTES(size, readers))
		return -EINVAL;
	memset(l, 0, sizeof(*l));
	l->storage = (char *)storage + skip;
	l->size = size;
	/* the number of the value stands behind it */
	l->stride = (size + sizeof(uint64_t) + LINE - 1) / LINE * LINE;
	l->readers = readers;
	for (unsigned int i = 0; i < readers; i++) {
		struct side *s = side_of(l, i);

		memset(s, 0, sizeof(*s));
		s->back = 1;
		s->front = 2;
	}
	return 0;
}

void rtsc_latest_write(struct rtsc_latest *l, const void *value)
{
	l->written++;
	for (unsigned int i = 0; i < l->readers; i++) {
		struct side *s = side_of(l, i);
		char *to = buffer_of(l, i, s->back);

		memcpy(to, value, l->size);
		memcpy(to + l->stride - sizeof(l->written), &l->written,
		       sizeof(l->written));
		/* release: pairs with the acquire in rtsc_latest_read(), the value is
		 * there; acquire: with its release, the reader has left the buffer */
		s->back = __atomic_exchange_n(&s->middle, s->back | FRESH,
					      __ATOMIC_ACQ_REL) &
			  INDEX;
	}
}

uint64_t rtsc_latest_read(struct rtsc_latest *l, unsigned int reader, void *value)
{
	struct side *s = side_of(l, reader);
	const char *from;
	uint64_t number;

	/* only this thread takes FRESH away: what it sees stays */
	if (__atomic_load_n(&s->middle, __ATOMIC_RELAXED) & FRESH)
		/* acquire and release: pair with those in rtsc_latest_write() */
		s->front = __atomic_exchange_n(&s->middle, s->front, __ATOMIC_ACQ_REL) &
			   INDEX;
	else if (s->end[0] == 0)
		return 0;
	s->end[0] = 1; /* it has had one */
	from = buffer_of(l, reader, s->front);
	memcpy(value, from, l->size);
	memcpy(&number, from + l->stride - sizeof(number), sizeof(number));
	return number;
}

/* --- the queue -------------------------------------------------------------------- */

int rtsc_queue_init(struct rtsc_queue *q, void *storage, size_t bytes, size_t size)
{
	uint64_t records = 1;

	if (!size || bytes < size)
		return -EINVAL;
	while (records * 2 <= bytes / size)
		records *= 2;
	memset(q, 0, sizeof(*q));
	q->storage = (char *)storage;
	q->size = size;
	q->mask = records - 1;
	return 0;
}

bool rtsc_queue_push(struct rtsc_queue *q, const void *record)
{
	const uint64_t head = q->head;

	if (head - q->seen_tail > q->mask) {
		/* acquire: pairs with the release in rtsc_queue_pop(), the consumer has
		 * left the record that is to be written */
		q->seen_tail = __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE);
		if (head - q->seen_tail > q->mask) {
			/* one writer; relaxed: a count, which orders nothing */
			__atomic_store_n(&q->dropped, q->dropped + 1, __ATOMIC_RELAXED);
			return false;
		}
	}
	memcpy(q->storage + (head & q->mask) * q->size, record, q->size);
	/* release: pairs with the acquire in rtsc_queue_pop(), the record is there */
	__atomic_store_n(&q->head, head + 1, __ATOMIC_RELEASE);
	return true;
}

bool rtsc_queue_pop(struct rtsc_queue *q, void *record)
{
	const uint64_t tail = q->tail;

	/* acquire: pairs with the release in rtsc_queue_push() */
	if (__atomic_load_n(&q->head, __ATOMIC_ACQUIRE) == tail)
		return false;
	memcpy(record, q->storage + (tail & q->mask) * q->size, q->size);
	/* release: pairs with the acquire in rtsc_queue_push() */
	__atomic_store_n(&q->tail, tail + 1, __ATOMIC_RELEASE);
	return true;
}

uint64_t rtsc_queue_dropped(const struct rtsc_queue *q)
{
	return __atomic_load_n(&q->dropped, __ATOMIC_RELAXED);
}

/* --- the log: in the task --------------------------------------------------------- */

union value {
	long long number;
	double real;
	const void *pointer;
};

struct message {
	int64_t time_ns;
	const char *format;
	union value value[RTSC_LOG_ARGS];
};

struct rtsc_log {
	struct rtsc_queue queue;
	char name[32];
	int fd;
	int64_t every_ns;
	uint64_t told;      /* of what was dropped: the writer's */
	uint64_t unwritten; /* lines */
	uint32_t stop;
	pthread_t thread;
	void *storage;
};

enum kind { KIND_NONE, KIND_NUMBER, KIND_REAL, KIND_POINTER };

/* One conversion of a format: where it ends, its kind, and its length modifier. */
struct conversion {
	const char *end;
	enum kind kind;
	char length; /* 'l', 'q' (ll), 'z' (also j and t), 'h', or 0 */
	char letter;
};

/* The conversion behind a '%'. */
static struct conversion read_conversion(const char *at)
{
	struct conversion c = { NULL, KIND_NONE, 0, 0 };

	at += strspn(at, "-+ #0123456789.'");
	for (; *at && strchr("hlqjzt", *at); at++)
		c.length = (char)(*at == 'l' && c.length == 'l' ? 'q'
				  : *at == 'j' || *at == 't'    ? 'z'
								: *at);
	c.letter = *at;
	c.end = *at ? at + 1 : at;
	if (*at && strchr("diuxXoc", *at))
		c.kind = KIND_NUMBER;
	else if (*at && strchr("fFeEgGaA", *at))
		c.kind = KIND_REAL;
	else if (*at == 's' || *at == 'p')
		c.kind = KIND_POINTER;
	return c;
}

static long long take_number(va_list *args, const struct conversion *c)
{
	const bool is_signed = c->letter == 'd' || c->letter == 'i' || c->letter == 'c';

	switch (c->length) {
	case 'q':
		return va_arg(*args, long long);
	case 'z':
		return is_signed ? (long long)va_arg(*args, ptrdiff_t)
				 : (long long)va_arg(*args, size_t);
	case 'l':
		return is_signed ? (long long)va_arg(*args, long)
				 : (long long)va_arg(*args, unsigned long);
	default:
		return is_signed ? (long long)va_arg(*args, int)
				 : (long long)va_arg(*args, unsigned int);
	}
}

bool rtsc_log_print(struct rtsc_log *log, const char *format, ...)
{
	struct message m;
	struct timespec now;
	unsigned int used = 0;
	va_list args;

	clock_gettime(CLOCK_MONOTONIC, &now);
	m.time_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	m.format = format;
	va_start(args, format);
	for (const char *at = strchr(format, '%'); at && used < RTSC_LOG_ARGS;) {
		struct conversion c = read_conversion(at + 1);

		if (c.kind == KIND_NUMBER)
			m.value[used++].number = take_number(&args, &c);
		else if (c.kind == KIND_REAL)
			m.value[used++].real = va_arg(args, double);
		else if (c.kind == KIND_POINTER)
			m.value[used++].pointer = va_arg(args, const void *);
		at = strchr(c.end, '%');
	}
	va_end(args);
	while (used < RTSC_LOG_ARGS)
		m.value[used++].number = 0;
	return rtsc_queue_push(&log->queue, &m);
}

/* --- the log: in its thread ------------------------------------------------------- */

static void append(char *text, size_t *used, const char *more, size_t size)
{
	if (size > TEXT_BYTES - 1 - *used)
		size = TEXT_BYTES - 1 - *used;
	memcpy(text + *used, more, size);
	*used += size;
	text[*used] = '\0';
}

/* Formats one conversion: its flags and letter, with the length of a long long. */
static void format_one(char *text, size_t *used, const char *begin,
		       const struct conversion *c, const union value *value)
{
	const size_t flags = 1 + strspn(begin + 1, "-+ #0123456789.'");
	char piece[128], spec[40];

	if (flags > sizeof(spec) - 4)
		return;
	memcpy(spec, begin, flags);
	snprintf(spec + flags, sizeof(spec) - flags, "%s%c",
		 c->kind == KIND_NUMBER && c->letter != 'c' ? "ll" : "", c->letter);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (c->kind == KIND_REAL)
		snprintf(piece, sizeof(piece), spec, value->real);
	else if (c->kind == KIND_POINTER)
		snprintf(piece, sizeof(piece), spec, value->pointer);
	else if (c->letter == 'c')
		snprintf(piece, sizeof(piece), spec, (int)value->number);
	else
		snprintf(piece, sizeof(piece), spec, value->number);
#pragma GCC diagnostic pop
	append(text, used, piece, strlen(piece));
}

static void format_message(char *text, size_t *used, const struct message *m)
{
	const char *from = m->format, *at;
	unsigned int value = 0;

	while ((at = strchr(from, '%'))) {
		struct conversion c = read_conversion(at + 1);

		append(text, used, from, (size_t)(at - from));
		if (c.kind == KIND_NONE && c.letter == '%')
			append(text, used, "%", 1);
		else if (c.kind == KIND_NONE || value == RTSC_LOG_ARGS)
			append(text, used, at, (size_t)(c.end - at));
		else
			format_one(text, used, at, &c, &m->value[value++]);
		from = c.end;
	}
	append(text, used, from, strlen(from));
}

static void write_line(struct rtsc_log *log, char *text, size_t used)
{
	if (used == TEXT_BYTES - 1)
		used--;
	text[used++] = '\n';
	for (size_t done = 0; done < used;) {
		ssize_t n = write(log->fd, text + done, used - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			__atomic_store_n(&log->unwritten, log->unwritten + 1,
					 __ATOMIC_RELAXED);
			return;
		}
		done += (size_t)n;
	}
}

static void drain(struct rtsc_log *log)
{
	char text[TEXT_BYTES];
	struct message m;
	uint64_t dropped;
	int used;

	while (rtsc_queue_pop(&log->queue, &m)) {
		size_t at;

		used = snprintf(text, sizeof(text), "%lld.%09lld %s%s",
				(long long)(m.time_ns / 1000000000),
				(long long)(m.time_ns % 1000000000), log->name,
				log->name[0] ? ": " : "");
		at = (size_t)used;
		format_message(text, &at, &m);
		write_line(log, text, at);
	}
	dropped = rtsc_queue_dropped(&log->queue);
	if (dropped == log->told)
		return;
	used = snprintf(text, sizeof(text), "%s%s%llu messages were dropped", log->name,
			log->name[0] ? ": " : "",
			(unsigned long long)(dropped - log->told));
	log->told = dropped;
	write_line(log, text, (size_t)used);
}

static void *write_log(void *arg)
{
	struct rtsc_log *log = (struct rtsc_log *)arg;
	const struct timespec every = { .tv_sec = log->every_ns / 1000000000,
					.tv_nsec = (long)(log->every_ns % 1000000000) };
	struct sched_param ordinary;

	/* raw: musl's sched_setscheduler() is a stub */
	memset(&ordinary, 0, sizeof(ordinary));
	syscall(SYS_sched_setscheduler, 0, 0 /* SCHED_OTHER */, &ordinary);
	/* acquire: pairs with the release in rtsc_log_close(), all was logged by then */
	while (!__atomic_load_n(&log->stop, __ATOMIC_ACQUIRE)) {
		drain(log);
		nanosleep(&every, NULL);
	}
	drain(log);
	return NULL;
}

int rtsc_log_open(struct rtsc_log **out, const struct rtsc_log_setup *setup)
{
	const size_t records = setup && setup->records ? setup->records : LOG_RECORDS;
	struct rtsc_log *log = (struct rtsc_log *)calloc(1, sizeof(*log));
	int err = ENOMEM;

	*out = NULL;
	if (!log)
		return -ENOMEM;
	log->fd = setup && setup->fd ? setup->fd : STDERR_FILENO;
	log->every_ns = setup && setup->every_ns > 0 ? setup->every_ns : LOG_NS;
	if (setup && setup->name)
		snprintf(log->name, sizeof(log->name), "%s", setup->name);
	log->storage = calloc(records, sizeof(struct message));
	if (log->storage) {
		/* touched: the task meets no page fault */
		memset(log->storage, 0, records * sizeof(struct message));
		err = -rtsc_queue_init(&log->queue, log->storage,
				       records * sizeof(struct message),
				       sizeof(struct message));
	}
	if (!err)
		err = pthread_create(&log->thread, NULL, write_log, log);
	if (err) {
		free(log->storage);
		free(log);
		return -err;
	}
	*out = log;
	return 0;
}

uint64_t rtsc_log_dropped(const struct rtsc_log *log)
{
	return rtsc_queue_dropped(&log->queue);
}

uint64_t rtsc_log_unwritten(const struct rtsc_log *log)
{
	return __atomic_load_n(&log->unwritten, __ATOMIC_RELAXED);
}

void rtsc_log_close(struct rtsc_log *log)
{
	/* release: pairs with the acquire in write_log() */
	__atomic_store_n(&log->stop, 1, __ATOMIC_RELEASE);
	pthread_join(log->thread, NULL);
	free(log->storage);
	free(log);
}
