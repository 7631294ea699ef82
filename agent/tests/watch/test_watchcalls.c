/* SPDX-License-Identifier: MIT */
/* watchcalls: which system calls are timed, and which of them cannot block. */
#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sem.h>
#include <sys/socket.h>
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

static enum watchcalls_descriptor descriptor(void *of, int fd)
{
	(void)of;
	switch (fd) {
	case 7:
		return DESCRIPTOR_NEVER_WAITS;
	case 8:
		return DESCRIPTOR_GONE;
	case 9:
		return DESCRIPTOR_OF_FILE;
	case 10:
		return DESCRIPTOR_OF_EVENTS;
	default:
		return DESCRIPTOR_WAITS;
	}
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

static struct watchcalls_process process = { NULL, descriptor, copy, 0 };

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

static void each_filter_fits_and_lets_its_calls_through(enum watchcalls_abi abi)
{
	static const uint64_t args[WATCHCALLS_ARGS] = { 0 };
	unsigned int found = 0;

	struct watchcalls_process of = process;

	of.abi = abi;
	CHECK(watchcalls_filter_memory(filter, sizeof(filter), abi));
	CHECK(watchcalls_filter_blocking(filter, sizeof(filter), abi));
	CHECK(watchcalls_filter_words(filter, sizeof(filter), abi));
	CHECK(watchcalls_filter_timed(filter, sizeof(filter), abi));
	for (long id = 0; id < 1100; id++) {
		const long number = id | (abi == CALLS_X32 ? 1 << 30 : 0);
		struct timeline_record r;
		const char *at = filter;
		const bool timed = watchcalls_read(number, args, &of, &r);

		CHECK(any(&at, number) == timed && !*skip(&at));
		found += timed;
	}
	CHECK(found > 600); /* of them those that a newer kernel may have */
	CHECK(!watchcalls_filter_timed(filter, 100, abi));
}

static void filters_fit_and_let_their_calls_through(void)
{
	for (unsigned int abi = 0; abi < WATCHCALLS_ABIS; abi++)
		each_filter_fits_and_lets_its_calls_through((enum watchcalls_abi)abi);
}

static const char *name_in(enum watchcalls_abi abi, long number)
{
	static const uint64_t args[WATCHCALLS_ARGS] = { 0 };
	struct watchcalls_process of = process;
	struct timeline_record r = { .call = "none" };

	of.abi = abi;
	watchcalls_read(number, args, &of, &r);
	return r.call;
}

static void a_call_is_named_by_the_mode_that_it_was_made_in(void)
{
	CHECK(strcmp(name_in(CALLS_X86_64, 1), "write") == 0);
	CHECK(strcmp(name_in(CALLS_GENERIC, 64), "write") == 0);
	CHECK(strcmp(name_in(CALLS_ARM, 4), "write") == 0);
	CHECK(strcmp(name_in(CALLS_I386, 4), "write") == 0);
	CHECK(strcmp(name_in(CALLS_I386, 102), "socketcall") == 0);
	CHECK(strcmp(name_in(CALLS_X32, 1 << 30 | 516), "writev") == 0);
	/* numbers that mean something else elsewhere */
	CHECK(strcmp(name_in(CALLS_ARM, 20), "none") == 0); /* getpid */
	CHECK(strcmp(name_in(CALLS_GENERIC, 20), "epoll_create1") == 0);
}

static void the_mode_is_that_of_the_call(void)
{
#if defined(__x86_64__)
	CHECK(watchcalls_of_call(true, 4) == CALLS_I386);
	CHECK(watchcalls_of_call(false, 1) == CALLS_X86_64);
	CHECK(watchcalls_of_call(false, 1 << 30 | 1) == CALLS_X32);
#elif defined(__arm__) || defined(__aarch64__)
	CHECK(watchcalls_of_call(true, 4) == CALLS_ARM);
	CHECK(watchcalls_of_call(false, 64) == CALLS_GENERIC);
#endif
}

static enum watchcalls_abi of_elf(unsigned char class, unsigned char machine)
{
	const unsigned char elf[WATCHCALLS_HEAD] = { 0x7f, 'E',   'L',
						     'F',  class, [18] = machine };

	return watchcalls_of_program(elf);
}

static void a_program_has_the_calls_of_its_processor(void)
{
	static const unsigned char script[WATCHCALLS_HEAD] = "#!/bin/sh";

	CHECK(of_elf(1, 3) == CALLS_I386 && of_elf(1, 40) == CALLS_ARM);
	CHECK(of_elf(1, 62) == CALLS_X32 && of_elf(2, 62) == CALLS_X86_64);
	CHECK(of_elf(2, 183) == CALLS_GENERIC && of_elf(2, 243) == CALLS_GENERIC);
	CHECK(watchcalls_of_program(script) == watchcalls_own());
}

/* A time of seconds and ns of 32 bits each is half as long: a time of zero at 16 is
 * followed by ones. */
static bool copy_narrow(void *of, uint64_t address, void *to, size_t size)
{
	(void)of;
	memset(to, 1, size);
	memset(to, 0, address == 16 && size > 8 ? 8 : size);
	return true;
}

static void times_have_the_size_of_their_call(void)
{
	static const struct watchcalls_process narrow = { NULL, descriptor, copy_narrow,
							  CALLS_ARM };
	const uint64_t args[WATCHCALLS_ARGS] = { 0, 0, 16, 0, 0, 0 };
	struct timeline_record r;

	CHECK(watchcalls_read(336, args, &narrow, &r) && r.cannot_block);  /* ppoll */
	CHECK(watchcalls_read(414, args, &narrow, &r) && !r.cannot_block); /* _time64 */
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
	const struct watchcalls_process later = { NULL, descriptor, NULL, process.abi };
	const uint64_t args[WATCHCALLS_ARGS] = { 1, 32, 1, 0, 0, 0 };
	struct timeline_record r = { .kind = TIMED_NOT };

	CHECK(watchcalls_read(SYS_semop, args, &later, &r));
	CHECK(r.unsure && !r.cannot_block);
	CHECK(watchcalls_read(SYS_semop, args, &process, &r));
	CHECK(!r.unsure && r.cannot_block);
	CHECK(watchcalls_read(SYS_fsync, args, &later, &r));
	CHECK(!r.unsure && !r.cannot_block);
}

static void a_call_whose_descriptor_is_closed_since_is_not_judged(void)
{
	struct timeline_record r = call_of(SYS_write, 8, 0, 0, 0, 0);

	CHECK(r.gone && !r.cannot_block && r.fd == 9);
	r = call_of(SYS_recvmsg, 8, 0, 64, 0, 0); /* MSG_DONTWAIT decides */
	CHECK(!r.gone && r.cannot_block && r.fd == 0);
	r = call_of(SYS_write, 7, 0, 0, 0, 0);
	CHECK(!r.gone && r.cannot_block && r.fd == 8);
}

static struct timeline_numbers numbers_of(long number, uint64_t a, uint64_t b,
					  uint64_t c, uint64_t d)
{
	return call_of(number, a, b, c, d, 0).numbers;
}

static void a_call_closes_numbers(void)
{
	struct timeline_numbers n = numbers_of(SYS_close, 5, 0, 0, 0);

	CHECK(n.closes == 6 && n.closes_to == 6 && !n.makes && !n.copies);
	n = numbers_of(SYS_close_range, 5, 9, 0, 0);
	CHECK(n.closes == 6 && n.closes_to == 10);
	n = numbers_of(SYS_close_range, 3, UINT32_MAX, 0, 0);
	CHECK(n.closes == 4 && n.closes_to == INT32_MAX);
	CHECK(!numbers_of(SYS_close_range, 3, UINT32_MAX, 4, 0).closes); /* CLOEXEC */
}

static void a_call_copies_a_number(void)
{
	struct timeline_numbers n = numbers_of(SYS_dup3, 7, 5, 0, 0);

	CHECK(n.closes == 6 && n.closes_to == 6 && n.copies == 8);
	CHECK(n.is == NUMBER_NONBLOCKING); /* as 7 is */
	n = numbers_of(SYS_dup, 8, 0, 0, 0);
	CHECK(n.copies == 9 && !n.closes && !n.is); /* gone */
	CHECK(numbers_of(SYS_dup, 5, 0, 0, 0).is == NUMBER_WAITS);
#ifdef SYS_fcntl
	CHECK(numbers_of(SYS_fcntl, 7, F_DUPFD_CLOEXEC, 20, 0).copies == 8);
	CHECK(!numbers_of(SYS_fcntl, 7, F_GETFL, 0, 0).copies);
#endif
}

static void a_call_makes_a_number(void)
{
	struct timeline_numbers n = numbers_of(SYS_accept4, 4, 0, 0, SOCK_NONBLOCK);

	CHECK(n.makes && n.is == NUMBER_NONBLOCKING && !n.sets);
	n = numbers_of(SYS_accept4, 4, 0, 0, SOCK_CLOEXEC);
	CHECK(n.makes && n.is == NUMBER_WAITS);
	n = numbers_of(SYS_openat, 3, 0, O_WRONLY, 0);
	CHECK(n.makes && n.is == (NUMBER_WAITS | NUMBER_OF_FILE));
	n = numbers_of(SYS_openat, 3, 0, O_WRONLY | O_NONBLOCK, 0);
	CHECK(n.makes && n.is == NUMBER_OF_FILE);
	n = numbers_of(SYS_socket, 1, SOCK_DGRAM | SOCK_NONBLOCK, 0, 0);
	CHECK(n.is == NUMBER_NONBLOCKING);
	CHECK(numbers_of(SYS_eventfd2, 0, 0, 0, 0).is == NUMBER_NONBLOCKING);
	CHECK(!numbers_of(SYS_fsync, 3, 0, 0, 0).makes);
}

static void a_call_sets_flags(void)
{
	struct timeline_record r = call_of(SYS_ioctl, 5, FIONBIO, 64, 0, 0);

	CHECK(r.cannot_block && r.numbers.sets == 6 && r.numbers.from_memory);
	CHECK(!r.numbers.is); /* it cannot be read */
	r = call_of(SYS_ioctl, 5, FIONBIO, 16, 0, 0);
	CHECK(r.numbers.is == NUMBER_WAITS);
	r = call_of(SYS_ioctl, 5, FIONREAD, 0x1000, 0, 0);
	CHECK(!r.cannot_block && !r.numbers.sets);
#ifdef SYS_fcntl
	r = call_of(SYS_fcntl, 5, F_SETFL, O_NONBLOCK, 0, 0);
	CHECK(r.numbers.sets == 6 && r.numbers.is == NUMBER_NONBLOCKING);
	r = call_of(SYS_fcntl, 5, F_SETFL, 0, 0, 0);
	CHECK(r.numbers.sets == 6 && r.numbers.is == NUMBER_WAITS);
#endif
}

static void flags_decide_unless_it_is_a_file_or_of_events(void)
{
	CHECK(call_of(SYS_write, 7, 0, 0, 0, 0).by_flags);
	CHECK(call_of(SYS_write, 5, 0, 0, 0, 0).by_flags);
	CHECK(!call_of(SYS_write, 9, 0, 0, 0, 0).by_flags);
	CHECK(!call_of(SYS_write, 9, 0, 0, 0, 0).cannot_block);
	CHECK(!call_of(SYS_write, 10, 0, 0, 0, 0).by_flags);
	CHECK(call_of(SYS_write, 10, 0, 0, 0, 0).cannot_block);
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
	CHECK(call_of(SYS_wait4, 5, 0, 0, 0, 0).idle);
	CHECK(call_of(SYS_wait4, 5, 0, 0, 0, 0).key == 0); /* a process, ever another */
}

int main(void)
{
	process.abi = watchcalls_own();
	filters_fit_and_let_their_calls_through();
	a_call_is_named_by_the_mode_that_it_was_made_in();
	the_mode_is_that_of_the_call();
	a_program_has_the_calls_of_its_processor();
	times_have_the_size_of_their_call();
	a_call_that_costs_nothing_is_not_timed();
	a_call_that_cannot_block_is_known_by_its_arguments();
	a_time_of_zero_is_read_from_memory();
	without_its_memory_a_call_with_a_time_is_unsure();
	a_call_whose_descriptor_is_closed_since_is_not_judged();
	a_call_closes_numbers();
	a_call_copies_a_number();
	a_call_makes_a_number();
	a_call_sets_flags();
	flags_decide_unless_it_is_a_file_or_of_events();
	a_futex_call_has_its_word_and_what_it_expects();
	a_wait_for_events_is_told_from_another_by_its_argument();
	return 0;
}
