/* SPDX-License-Identifier: MIT */
/* Behind every hundredth sleep of a thread it works for 30,000 instructions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *asked,
		    struct timespec *rest)
{
	static int (*real)(clockid_t, int, const struct timespec *, struct timespec *);
	static __thread int times;
	int status;

	if (!real)
		real = dlsym(RTLD_NEXT, "clock_nanosleep");
	status = real(clock, flags, asked, rest);
	if (++times % 100 == 0)
		for (volatile int i = 0; i < 5000; i++)
			;
	return status;
}
