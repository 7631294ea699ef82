// SPDX-License-Identifier: GPL-2.0
/*
 * dally - what other modules spend time in: one helper for all of them.
 *
 * Called by near and far, in whatever context they are in. It reads the clock, as a
 * driver does that waits for its device.
 */
#include <linux/module.h>
#include <linux/timekeeping.h>

#include "dally.h"

noinline void dally(unsigned int us)
{
	const u64 end = ktime_get_mono_fast_ns() + us * 1000ULL;

	while (ktime_get_mono_fast_ns() < end)
		cpu_relax();
}
EXPORT_SYMBOL_GPL(dally);

MODULE_DESCRIPTION("Spends time for other modules");
MODULE_LICENSE("GPL");
