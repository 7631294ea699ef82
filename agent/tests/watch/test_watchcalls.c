/* SPDX-License-Identifier: MIT */
/* watchcalls: which system calls are timed, and which of them cannot block. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sem.h>
#include <sys/syscall.h>

#include "tests/check.h"
#include "watch/watchcalls.h"

static char filter[4000];

/* The kernel's grammar, as far as the filter needs it. */
static bool any(const char **at, long id);

static const char *skip(const char **at)
{
	while (**at == ' ')
		++*at;
	return *at;
}

static bool takes(const char **at, const char *word)
{
	if (strncmp(skip(at), word, strlen(word)) != 0)
		return false;
	*at += strlen(word);
	return true;
}

static bool one(const char **at, long id)
{
	static const char *const operators[] = { "==", "!=", ">=", "<" };
	unsigned int i = 0;
	bool is;
	long number;

	if (takes(at, "(")) {
		is = any(at, id);
		CHECK(takes(at, ")"));
		return is;
	}
	CHECK(takes(at, "id"));
	while (i < 4 && !takes(at, operators[i]))
		i++;
	CHECK(i < 4 && isdigit((unsigned char)*skip(at)));
	number = strtol(*at, (char **)at, 10);
	return i == 0   ? id == number
	       : i == 1 ? id != number
	       : i == 2 ? id >= number
			: id < number;
}

static bool all(const char **at, long id)
{
	bool is = one(at, id);

	while (takes(at, "&&"))
		is &= one(at, id);
	return is;
}

static bool any(const char **at, long id)
{
	bool is = all(at, id);

	while (takes(at, "||"))
		is |= all(at, id);
	return is;
}

static bool nonblocking(void *of, int fd)
{
	(void)of;
	return fd == 7;
}

/* Of memory that has a zero time at 16, and a sembuf with IPC_NOWAIT at 32. */
static bool copy(void *of, uint64_t address, void *to, size_t size)
{
	const struct sembuf no_wait = { .sem_flg = IPC_NOWAIT };

	(void)of;
	memset(to, address == 16 ? 0 : 1, size);
	if (address == 32 && size == sizeof(no_wait))
		memcpy(to, &no_wait, size);
	return address != 64;
}

static const struct watchcalls_process process = { NULL, nonblocking, copy,
						   sizeof(long) };

static struct timeline_record call_of(long number, uint64_t a0, uint64_t a1,
				      uint64_t a2, uint64_t a3, uint64_t a4)
{
	const uint64_t args[WATCHCALLS_ARGS] = { a0, a1, a2, a3, a4, 0 };
	struct timeline_record r = { .kind = TIMED_NOT };

	CHECK(watchcalls_read(number, args, &process, &r));
	return r;
}

static bool harmless(long number, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
		     uint64_t a4)
{
	return call_of(number, a0, a1, a2, a3, a4).cannot_block;
}

static void each_filter_fits_and_lets_its_calls_through(void)
{
	static const uint64_t args[WATCHCALLS_ARGS] = { 0 };
	unsigned int found = 0;

	CHECK(watchcalls_filter_memory(filter, sizeof(filter)));
	CHECK(watchcalls_filter_blocking(filter, sizeof(filter)));
	CHECK(watchcalls_filter_timed(filter, sizeof(filter)));
	for (long id = 0; id < 1100; id++) {
		struct timeline_record r;
		const char *at = filter;
		const bool timed = watchcalls_read(id, args, &process, &r);

		CHECK(any(&at, id) == timed && !*skip(&at));
		found += timed;
	}
	CHECK(found > 700); /* of them those that a newer kernel may have */
	CHECK(!watchcalls_filter_timed(filter, 100));
}

static void a_call_that_costs_nothing_is_not_timed(void)
{
	static const uint64_t args[WATCHCALLS_ARGS] = { 0 };
	struct timeline_record r;

	CHECK(!watchcalls_read(SYS_gettid, args, &process, &r));
	CHECK(!watchcalls_read(SYS_getppid, args, &process, &r));
	CHECK(!watchcalls_read(SYS_exit, args, &process, &r));
	CHECK(!watchcalls_read(-1, args, &process, &r));
	CHECK(call_of(600, 0, 0, 0, 0, 0).call[0] == '\0');
	CHECK(strcmp(call_of(SYS_membarrier, 1, 0, 0, 0, 0).call, "membarrier") == 0);
}

static void a_call_that_cannot_block_is_known_by_its_arguments(void)
{
	CHECK(harmless(SYS_write, 7, 0, 0, 0, 0) &&
	      !harmless(SYS_write, 6, 0, 0, 0, 0));
	CHECK(harmless(SYS_recvmsg, 6, 0, 64, 0, 0));
	CHECK(harmless(SYS_recvmsg, 7, 0, 0, 0, 0));
	CHECK(!harmless(SYS_recvmsg, 6, 0, 0, 0, 0));
	CHECK(harmless(SYS_sendto, 6, 0, 0, 0x4040, 0));
	CHECK(harmless(SYS_flock, 6, 2 | 4, 0, 0, 0) &&
	      !harmless(SYS_flock, 6, 2, 0, 0, 0));
	CHECK(harmless(SYS_membarrier, 0, 0, 0, 0, 0));
	CHECK(harmless(SYS_lseek, 6, 0, 0, 0, 0) &&
	      !harmless(SYS_lseek, 6, 0, 3, 0, 0));
	CHECK(harmless(SYS_msgsnd, 6, 0, 8, IPC_NOWAIT, 0));
	CHECK(!harmless(SYS_msgsnd, 6, 0, 8, 0, 0));
#ifdef SYS_fcntl
	CHECK(harmless(SYS_fcntl, 6, 3, 0, 0, 0) &&
	      !harmless(SYS_fcntl, 6, 7, 0, 0, 0));
#endif
}

static void a_time_of_zero_is_read_from_memory(void)
{
#ifdef SYS_ppoll
	CHECK(harmless(SYS_ppoll, 0, 0, 16, 0, 0) &&
	      !harmless(SYS_ppoll, 0, 0, 0, 0, 0));
	CHECK(!harmless(SYS_ppoll, 0, 0, 48, 0, 0) &&
	      !harmless(SYS_ppoll, 0, 0, 64, 0, 0));
#endif
#ifdef SYS_poll
	CHECK(harmless(SYS_poll, 0, 1, 0, 0, 0) && !harmless(SYS_poll, 0, 1, 5, 0, 0));
#endif
	CHECK(harmless(SYS_semop, 1, 32, 1, 0, 0) &&
	      !harmless(SYS_semop, 1, 48, 1, 0, 0));
}

static void without_its_memory_a_call_with_a_time_is_unsure(void)
{
	static const struct watchcalls_process later = { NULL, nonblocking, NULL,
							 sizeof(long) };
	const uint64_t args[WATCHCALLS_ARGS] = { 1, 32, 1, 0, 0, 0 };
	struct timeline_record r = { .kind = TIMED_NOT };

	CHECK(watchcalls_read(SYS_semop, args, &later, &r));
	CHECK(r.unsure && !r.cannot_block);
	CHECK(watchcalls_read(SYS_semop, args, &process, &r));
	CHECK(!r.unsure && r.cannot_block);
	CHECK(watchcalls_read(SYS_fsync, args, &later, &r));
	CHECK(!r.unsure && !r.cannot_block);
}

static void a_futex_call_has_its_word_and_what_it_expects(void)
{
	struct timeline_record r = call_of(SYS_futex, 0x1000, 128, 2, 0, 0);

	CHECK(r.what == TIMELINE_CALL && r.kind == TIMED_LOCK_WAIT);
	CHECK(r.futex.word == 0x1000 && r.futex.value == 2 && r.futex.command == 0);
	CHECK(call_of(SYS_futex, 0x1000, 6 | 128, 0, 0, 0).futex.command == 6);
	CHECK(call_of(SYS_futex, 0x1000, 1 | 128, 1, 0, 0).what == TIMELINE_UNLOCK);
	CHECK(call_of(SYS_futex, 0x1000, 7 | 128, 0, 0, 0).what == TIMELINE_UNLOCK);
	r = call_of(455, 0x2000, 5, 0, 0, 0); /* futex_wait */
	CHECK(r.futex.word == 0x2000 && r.futex.value == 5 && r.what == TIMELINE_CALL);
}

static void a_wait_for_events_is_told_from_another_by_its_argument(void)
{
	CHECK(call_of(SYS_read, 5, 0, 0, 0, 0).idle);
	CHECK(call_of(SYS_read, 5, 0, 0, 0, 0).key == 5);
	CHECK(!call_of(SYS_write, 5, 0, 0, 0, 0).idle);
	CHECK(call_of(SYS_write, 5, 0, 0, 0, 0).key == 0);
}

int main(void)
{
	each_filter_fits_and_lets_its_calls_through();
	a_call_that_costs_nothing_is_not_timed();
	a_call_that_cannot_block_is_known_by_its_arguments();
	a_time_of_zero_is_read_from_memory();
	without_its_memory_a_call_with_a_time_is_unsure();
	a_futex_call_has_its_word_and_what_it_expects();
	a_wait_for_events_is_told_from_another_by_its_argument();
	return 0;
}
