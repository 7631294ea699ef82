/* SPDX-License-Identifier: MIT */
#include "cycles/cyclewaits.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "files/slurp.h"
#include "machine/tracefs.h"

#define COUNT_OF(list) (sizeof(list) / sizeof(*(list)))
#define FILTER_BYTES   3500 /* the kernel takes a page */
#define TERM_BYTES     40
#define ELF_CLASS      4 /* elf.h: of e_ident; 1 is 32 bits, 2 is 64 bits */

/* Some architectures have the newer of two only. */
static const long waits[] = {
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_ppoll
	SYS_ppoll,
#endif
#ifdef SYS_ppoll_time64
	SYS_ppoll_time64,
#endif
#ifdef SYS_select
	SYS_select,
#endif
#ifdef SYS__newselect
	SYS__newselect,
#endif
#ifdef SYS_pselect6
	SYS_pselect6,
#endif
#ifdef SYS_pselect6_time64
	SYS_pselect6_time64,
#endif
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
	SYS_epoll_pwait,
#ifdef SYS_epoll_pwait2
	SYS_epoll_pwait2,
#endif
#ifdef SYS_io_uring_enter
	SYS_io_uring_enter,
#endif
#ifdef SYS_rt_sigtimedwait
	SYS_rt_sigtimedwait,
#endif
#ifdef SYS_rt_sigtimedwait_time64
	SYS_rt_sigtimedwait_time64,
#endif
};

bool cyclewaits_known(int pid)
{
	char path[32], of[ELF_CLASS + 2];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return slurp(path, of, sizeof(of)) > ELF_CLASS &&
	       of[ELF_CLASS] == (sizeof(long) == 8 ? 2 : 1);
}

static void put(char filter[FILTER_BYTES], const char *field, long value)
{
	const size_t used = strlen(filter);
	const bool first = !used || filter[used - 1] == '(';

	snprintf(filter + used, FILTER_BYTES - used, "%s%s == %ld", first ? "" : " || ",
		 field, value);
}

void cyclewaits_record(const char *instance, const int *tid, unsigned int tids)
{
	static const char *const files[] = { "enter/filter", "enter/enable",
					     "exit/filter", "exit/enable" };
	char filter[FILTER_BYTES] = "(", path[64];

	for (size_t i = 0; i < COUNT_OF(waits); i++)
		put(filter, "id", waits[i]);
	strcat(filter, ")");
	if (tids && strlen(filter) + tids * TERM_BYTES < FILTER_BYTES) {
		strcat(filter, " && (");
		for (unsigned int i = 0; i < tids; i++)
			put(filter, "common_pid", tid[i]);
		strcat(filter, ")");
	}
	for (size_t i = 0; i < COUNT_OF(files); i++) {
		snprintf(path, sizeof(path), "events/raw_syscalls/sys_%s", files[i]);
		/* without its filter all calls would come */
		if (tracefs_write(instance, path, i % 2 ? "1" : filter))
			return;
	}
}
