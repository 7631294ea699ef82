/* SPDX-License-Identifier: MIT */
#include "watch/waitclock.h"

#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

/* The calls with a clock; a time without one is of CLOCK_REALTIME. */
static const struct {
	const char *name;
	uint8_t time, clock; /* their arguments; no clock: 0 */
} timed[] = {
	{ "futex_wait", 4, 5 },      { "futex_waitv", 3, 4 },
	{ "mq_timedreceive", 4, 0 }, { "mq_timedreceive_time64", 4, 0 },
	{ "mq_timedsend", 4, 0 },    { "mq_timedsend_time64", 4, 0 },
};

bool waitclock_is_settable(const char *name, const uint64_t args[WAITCLOCK_ARGS])
{
	for (size_t i = 0; i < sizeof(timed) / sizeof(*timed); i++)
		if (strcmp(timed[i].name, name) == 0)
			return args[timed[i].time] &&
			       (!timed[i].clock ||
				(uint32_t)args[timed[i].clock] == CLOCK_REALTIME);
	return false;
}

/* The kernel knows no other clock for FUTEX_LOCK_PI; FUTEX_WAIT takes an interval, which
 * no change of a clock makes longer. */
static bool has_settable_deadline(const struct timeline_futex *f, uint64_t operation,
				  uint64_t time)
{
	return time && (f->command == FUTEX_LOCK_PI ||
			(operation & FUTEX_CLOCK_REALTIME && f->command != FUTEX_WAIT));
}

void waitclock_read_futex(const char *name, const uint64_t args[WAITCLOCK_ARGS],
			  struct timeline_record *out)
{
	const bool newer_call = strcmp(name, "futex_wait") == 0;
	bool settable;

	out->futex = (struct timeline_futex){
		.word = args[0],
		.value = (uint32_t)(newer_call ? args[1] : args[2]),
		.command =
			newer_call ? FUTEX_WAIT : (uint8_t)(args[1] & FUTEX_CMD_MASK),
	};
	settable = newer_call ? waitclock_is_settable(name, args)
			      : has_settable_deadline(&out->futex, args[1], args[3]);
	switch (out->futex.command) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		out->settable = settable ? SETTABLE_DEADLINE : SETTABLE_NOT;
		break;
	default:
		out->what = TIMELINE_UNLOCK;
	}
}

bool waitclock_is_settable_timer(const char *info)
{
	const char *clock = strstr(info, "clockid:"),
		   *set = strstr(info, "settime flags:");
	unsigned int number, flags;

	/* CLOCK_REALTIME_ALARM is 8 */
	return clock && set && sscanf(clock, "clockid: %u", &number) == 1 &&
	       sscanf(set, "settime flags: %o", &flags) == 1 &&
	       (number == CLOCK_REALTIME || number == 8) && flags & TFD_TIMER_ABSTIME;
}
