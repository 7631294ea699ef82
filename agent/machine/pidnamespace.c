/* SPDX-License-Identifier: MIT */
#include "machine/pidnamespace.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define FIRST "pid:[4026531836]" /* linux/proc_ns.h: PROC_PID_INIT_INO */

bool pidnamespace_is_first(void)
{
	char text[64];
	const ssize_t n = readlink("/proc/self/ns/pid", text, sizeof(text) - 1);

	if (n < 0)
		return errno == ENOENT; /* without CONFIG_PID_NS there is but one */
	text[n] = '\0';
	return strcmp(text, FIRST) == 0;
}
