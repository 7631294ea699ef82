/* SPDX-License-Identifier: MIT */
#include "watch/watchcalls.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sem.h>
#include <sys/socket.h>

#include "watch/calltable.h"
#include "watch/waitclock.h"

#define COUNT_OF(list) (sizeof(list) / sizeof(*(list)))
#define RULES          2
#define MOST_VALUES    3

/* When a call cannot block: see calls.toml. */
enum { ZERO = 1, HAS, IS, UNLESS, NONBLOCKING, NOTIME, NOWAIT };

struct rule {
	uint8_t when : 4, arg : 4;
};

struct call {
	int16_t number[WATCHCALLS_ABIS];
	uint8_t kind;
	unsigned char idle; /* 2: without a key */
	struct rule rule[RULES];
	uint16_t value[MOST_VALUES]; /* of the one rule that has some */
	const char *name;
};

/* clang-format off */
#define WHEN(number, when, arg) .rule[number] = { when, arg }
#define VALUES(...)             .value = { __VA_ARGS__ }
#define CALL(x86, generic, arm, i386, x32, call, kind, idle, ...)                      \
	{ { x86, generic, arm, i386, x32 }, kind, idle, .name = #call, __VA_ARGS__ },
/* clang-format on */

static const struct call calls[] = { CALLTABLE(CALL) };

/* Of a newer kernel: nothing is known of them. */
#define HIGHEST 1023
static const struct call newer = { .kind = TIMED_BLOCKING_CALL, .name = "" };

#define X32_BIT 0x40000000

enum watchcalls_abi watchcalls_own(void)
{
#if defined(__x86_64__)
	return CALLS_X86_64;
#elif defined(__arm__)
	return CALLS_ARM;
#else
	return CALLS_GENERIC;
#endif
}

enum watchcalls_abi watchcalls_of_call(bool narrow, long number)
{
#if defined(__x86_64__)
	return narrow ? CALLS_I386 : number & X32_BIT ? CALLS_X32 : CALLS_X86_64;
#elif defined(__arm__) || defined(__aarch64__)
	(void)number;
	return narrow ? CALLS_ARM : CALLS_GENERIC;
#else
	(void)narrow, (void)number;
	return CALLS_GENERIC;
#endif
}

enum watchcalls_abi watchcalls_of_program(const unsigned char elf[WATCHCALLS_HEAD])
{
	static const unsigned char magic[] = { 0x7f, 'E', 'L', 'F' };

	if (memcmp(elf, magic, sizeof(magic)) != 0)
		return watchcalls_own();
	switch (elf[18] | elf[19] << 8) { /* elf.h: e_machine */
	case 3:
		return CALLS_I386;
	case 62:
		return elf[4] == 1 ? CALLS_X32 : CALLS_X86_64;
	case 40:
		return CALLS_ARM;
	case 183:
	case 243:
		return CALLS_GENERIC;
	default:
		return watchcalls_own();
	}
}

static const struct call *find(enum watchcalls_abi abi, long number)
{
	const long highest =
		abi == CALLS_X32 ? CALLTABLE_HIGHEST_X32 : CALLTABLE_HIGHEST;

	for (size_t i = 0; i < COUNT_OF(calls); i++)
		if (calls[i].number[abi] == number && number >= 0)
			return &calls[i];
	return number > highest && number <= HIGHEST ? &newer : NULL;
}

/* --- the kernel's filters ------------------------------------------------------------ */

#define IN_A_ROW 3 /* so many comparisons are no more than a step of the search */

struct filter_text {
	char *text;
	size_t size, used; /* more than size: it has no room */
};

/* Of numbers that follow each other, without the last. */
struct range {
	int from, to;
};

/* The calls that are wanted. */
struct wanted {
	enum watchcalls_abi abi;
	unsigned int kinds;
};

static void put(struct filter_text *f, const char *format, int number)
{
	const bool room = f->used < f->size;

	f->used += (size_t)snprintf(room ? f->text + f->used : NULL,
				    room ? f->size - f->used : 0, format, number);
}

static void put_range(struct filter_text *f, const struct range *r)
{
	if (r->to == r->from + 1) {
		put(f, "id == %d", r->from);
		return;
	}
	put(f, "(id >= %d && ", r->from);
	put(f, "id < %d)", r->to);
}

static void put_search(struct filter_text *f, const struct range *r, size_t count)
{
	const size_t half = count / 2;

	if (count <= IN_A_ROW) {
		for (size_t i = 0; i < count; i++) {
			put(f, i ? " || " : "", 0);
			put_range(f, &r[i]);
		}
		return;
	}
	put(f, "(id < %d && (", r[half].from);
	put_search(f, r, half);
	put(f, ")) || (id >= %d && (", r[half].from);
	put_search(f, r + half, count - half);
	put(f, "))", 0);
}

static bool is_of(int number, const struct wanted *w)
{
	const struct call *call = find(w->abi, number);

	return call && w->kinds >> call->kind & 1;
}

static size_t find_ranges(const struct wanted *w, struct range *out)
{
	const int bit = w->abi == CALLS_X32 ? X32_BIT : 0;
	size_t count = 0;

	for (int number = 0; number <= HIGHEST; number++) {
		if (!is_of(number, w))
			continue;
		if (count && out[count - 1].to == (number | bit))
			out[count - 1].to++;
		else
			out[count++] =
				(struct range){ number | bit, (number | bit) + 1 };
	}
	return count;
}

/* First the sleep of each cycle: the kernel compares its end while the thread wakes. The
 * others are searched for, since one comparison after the other would take long. */
static bool filter_calls(char *filter, size_t size, struct wanted w)
{
	static const int sleeps[WATCHCALLS_ABIS] = CALLTABLE_SLEEPS;
	struct range range[HIGHEST / 2];
	struct filter_text f = { filter, size, 0 };

	put(&f, "id != %d && (", sleeps[w.abi] | (w.abi == CALLS_X32 ? X32_BIT : 0));
	put_search(&f, range, find_ranges(&w, range));
	put(&f, ")", 0);
	return f.used < f.size;
}

bool watchcalls_filter_memory(char *filter, size_t size, enum watchcalls_abi abi)
{
	return filter_calls(filter, size,
			    (struct wanted){ abi, 1u << TIMED_MEMORY_CALL });
}

bool watchcalls_filter_blocking(char *filter, size_t size, enum watchcalls_abi abi)
{
	return filter_calls(filter, size,
			    (struct wanted){ abi, 1u << TIMED_BLOCKING_CALL });
}

bool watchcalls_filter_words(char *filter, size_t size, enum watchcalls_abi abi)
{
	return filter_calls(filter, size,
			    (struct wanted){ abi, 1u << TIMED_LOCK_WAIT });
}

bool watchcalls_filter_timed(char *filter, size_t size, enum watchcalls_abi abi)
{
	return filter_calls(filter, size,
			    (struct wanted){ abi, 1u << TIMED_MEMORY_CALL |
							  1u << TIMED_BLOCKING_CALL |
							  1u << TIMED_LOCK_WAIT });
}

/* --- what a call can do -------------------------------------------------------------- */

/* Whether its times have seconds of 32 bits. */
static bool has_short_times(const struct call *call, enum watchcalls_abi abi)
{
	return (abi == CALLS_ARM || abi == CALLS_I386) &&
	       !strstr(call->name, "_time64") && strcmp(call->name, "epoll_pwait2");
}

static bool is_no_time(const struct watchcalls_process *p, const struct call *call,
		       uint64_t address)
{
	const bool is_short = has_short_times(call, p->abi);
	uint64_t time[2] = { 1, 1 };
	const size_t size = is_short ? sizeof(uint64_t) : sizeof(time);

	if (!address || !p->copy || !p->copy(p->of, address, time, size))
		return false;
	return !time[0] && (is_short || !time[1]);
}

static bool is_no_wait(const struct watchcalls_process *p, uint64_t address)
{
	struct sembuf first;

	return p->copy && p->copy(p->of, address, &first, sizeof(first)) &&
	       first.sem_flg & IPC_NOWAIT;
}

static bool applies(const struct call *call, const struct rule *r,
		    const uint64_t args[WATCHCALLS_ARGS],
		    const struct watchcalls_process *p)
{
	const uint64_t arg = args[r->arg];

	switch (r->when) {
	case ZERO:
		return (uint32_t)arg == 0;
	case HAS:
		return arg & call->value[0];
	case IS:
	case UNLESS:
		for (unsigned int i = 0; i < MOST_VALUES; i++)
			if (call->value[i] && (uint32_t)arg == call->value[i])
				return r->when == IS;
		return r->when == UNLESS;
	case NONBLOCKING: /* look_at_descriptor() */
		return false;
	case NOTIME:
		return is_no_time(p, call, arg);
	case NOWAIT:
		return is_no_wait(p, arg);
	default:
		return false;
	}
}

static bool is_of_memory(const struct rule *r, const uint64_t args[WATCHCALLS_ARGS])
{
	return (r->when == NOTIME || r->when == NOWAIT) && args[r->arg];
}

static bool is_unsure(const struct call *call, const uint64_t args[WATCHCALLS_ARGS])
{
	return is_of_memory(&call->rule[0], args) || is_of_memory(&call->rule[1], args);
}

static bool cannot_block(const struct call *call, const uint64_t args[WATCHCALLS_ARGS],
			 const struct watchcalls_process *p)
{
	for (unsigned int i = 0; i < RULES; i++)
		if (applies(call, &call->rule[i], args, p))
			return true;
	return false;
}

/* Its flags may have been read after the number was given to another file, or after they
 * were changed. */
static void look_at_descriptor(const struct call *call,
			       const uint64_t args[WATCHCALLS_ARGS],
			       const struct watchcalls_process *p,
			       struct timeline_record *out)
{
	enum watchcalls_descriptor is;

	if (call->rule[0].when != NONBLOCKING || out->cannot_block)
		return;
	is = p->descriptor(p->of, (int)args[call->rule[0].arg]);
	out->fd = (int)args[call->rule[0].arg] + 1;
	out->cannot_block = is == DESCRIPTOR_NEVER_WAITS ||
			    is == DESCRIPTOR_OF_EVENTS || is == DESCRIPTOR_SETTABLE;
	if (is == DESCRIPTOR_SETTABLE)
		out->settable = SETTABLE_TIMER;
	out->by_flags = is == DESCRIPTOR_NEVER_WAITS || is == DESCRIPTOR_WAITS;
	out->gone = is == DESCRIPTOR_GONE;
}

/* --- numbers of descriptors ----------------------------------------------------------- */

enum { OTHER, MAKES, MAKES_FILE, MAKES_EVENTS, COPIES, COPIES_TO, CLOSES, CLOSES_TO };

#define NO_FLAGS WATCHCALLS_ARGS /* it takes none */

/* `arg` has the flags of what it makes; they are those of open(). */
static const struct numbers {
	const char *name;
	uint8_t does, arg;
} numbers[] = {
	{ "close", CLOSES, 0 },
	{ "close_range", CLOSES_TO, 2 },
	{ "dup", COPIES, 0 },
	{ "dup2", COPIES_TO, 0 },
	{ "dup3", COPIES_TO, 0 },
	{ "open", MAKES_FILE, 1 },
	{ "openat", MAKES_FILE, 2 },
	{ "creat", MAKES_FILE, NO_FLAGS },
	{ "memfd_create", MAKES_FILE, NO_FLAGS },
	{ "accept", MAKES, NO_FLAGS },
	{ "accept4", MAKES, 3 },
	{ "socket", MAKES, 1 },
	{ "inotify_init1", MAKES, 0 },
	{ "mq_open", MAKES, 1 },
	{ "eventfd2", MAKES_EVENTS, NO_FLAGS },
	{ "signalfd4", MAKES_EVENTS, NO_FLAGS },
	{ "timerfd_create", MAKES_EVENTS, NO_FLAGS },
	{ NULL, OTHER, 0 },
};

/* A file waits all the same. */
static uint8_t made_as(uint8_t does, uint64_t flags)
{
	switch (does) {
	case MAKES_EVENTS:
		return NUMBER_NONBLOCKING;
	case MAKES_FILE:
		return NUMBER_OF_FILE | (flags & O_NONBLOCK ? 0 : NUMBER_WAITS);
	default:
		return flags & O_NONBLOCK ? NUMBER_NONBLOCKING : NUMBER_WAITS;
	}
}

static void copy_number(int fd, const struct watchcalls_process *p,
			struct timeline_numbers *n)
{
	static const uint8_t known[] = {
		[DESCRIPTOR_WAITS] = NUMBER_WAITS,
		[DESCRIPTOR_NEVER_WAITS] = NUMBER_NONBLOCKING,
		[DESCRIPTOR_OF_FILE] = NUMBER_WAITS | NUMBER_OF_FILE,
		[DESCRIPTOR_OF_EVENTS] = NUMBER_NONBLOCKING,
		[DESCRIPTOR_SETTABLE] = NUMBER_NONBLOCKING,
		[DESCRIPTOR_GONE] = 0,
	};

	n->copies = fd + 1;
	n->is = known[p->descriptor(p->of, fd)];
}

/* The value of FIONBIO is in memory, where the next call may have put another. */
static void control_number(const struct call *call,
			   const uint64_t args[WATCHCALLS_ARGS],
			   const struct watchcalls_process *p,
			   struct timeline_numbers *n)
{
	const uint32_t command = (uint32_t)args[1];
	int value = (int)args[2] & O_NONBLOCK;
	bool known = true;

	if (strcmp(call->name, "ioctl") == 0) {
		if (command != FIONBIO)
			return;
		n->from_memory = true;
		known = p->copy && p->copy(p->of, args[2], &value, sizeof(value));
	} else if (strncmp(call->name, "fcntl", strlen("fcntl")) != 0) {
		return;
	} else if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) {
		copy_number((int)args[0], p, n);
		return;
	} else if (command != F_SETFL) {
		return;
	}
	n->sets = (int)args[0] + 1;
	if (known)
		n->is = value ? NUMBER_NONBLOCKING : NUMBER_WAITS;
}

static void follow_numbers(const struct call *call,
			   const uint64_t args[WATCHCALLS_ARGS],
			   const struct watchcalls_process *p,
			   struct timeline_numbers *n)
{
	const struct numbers *is = numbers;

	while (is->name && strcmp(is->name, call->name) != 0)
		is++;
	switch (is->does) {
	case OTHER:
		control_number(call, args, p, n);
		break;
	case COPIES_TO:
		n->closes = n->closes_to = (int)args[1] + 1;
		copy_number((int)args[0], p, n);
		break;
	case COPIES:
		copy_number((int)args[0], p, n);
		break;
	case CLOSES:
		n->closes = n->closes_to = (int)args[0] + 1;
		break;
	case CLOSES_TO:
		if (args[2] & CLOSE_RANGE_CLOEXEC || (uint32_t)args[0] >= INT_MAX)
			break;
		n->closes = (int)args[0] + 1;
		n->closes_to = (uint32_t)args[1] < INT_MAX ? (int)args[1] + 1 : INT_MAX;
		break;
	default:
		n->makes = true;
		n->is = made_as(is->does, is->arg == NO_FLAGS ? 0 : args[is->arg]);
		break;
	}
}

bool watchcalls_read(long number, const uint64_t args[WATCHCALLS_ARGS],
		     const struct watchcalls_process *process,
		     struct timeline_record *out)
{
	const long bare = process->abi == CALLS_X32 ? number & ~(long)X32_BIT : number;
	const struct call *call = find(process->abi, bare);

	if (!call)
		return false;
	out->what = TIMELINE_CALL;
	out->kind = call->kind;
	out->call = call->name;
	out->number = (int)number;
	out->idle = call->idle;
	if (call->kind == TIMED_LOCK_WAIT) {
		waitclock_read_futex(call->name, args, out);
		return true;
	}
	if (waitclock_is_settable(call->name, args))
		out->settable = SETTABLE_DEADLINE;
	out->key = call->idle == 1 ? args[0] : 0;
	out->cannot_block = cannot_block(call, args, process);
	look_at_descriptor(call, args, process, out);
	follow_numbers(call, args, process, &out->numbers);
	out->unsure = !out->cannot_block && !process->copy && is_unsure(call, args);
	return true;
}
