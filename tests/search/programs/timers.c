/* SPDX-License-Identifier: MIT */
/*
 * Timers that expire together, and a lock of the log: why kernels can skew their ticks
 * (skew_tick in the kernel's list of parameters: contention of locks when all CPUs tick
 * at once).
 *
 * Truth: "flush" is in its 50 us with the lock of the log when "stats" is released, while
 * "tick" delays "control". Without stats, control takes at most about 160 us.
 */
#include "periodic.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void tick(void)
{
	spin_us(60);
}

static void control(void)
{
	spin_us(20);
	locked_us(&lock, 5);
}

static void stats(void)
{
	spin_us(200);
}

static void flush(void)
{
	spin_us(100);
	locked_us(&lock, 50);
	spin_us(100);
}

int main(void)
{
	static const struct periodic all[] = {
		{ "flush", 10, 1, 4000, flush },
		{ "stats", 70, 1, 4000, stats },
		{ "control", 80, 0, 2000, control },
		{ "tick", 90, 0, 4000, tick },
	};

	run_all(all, 4);
}
