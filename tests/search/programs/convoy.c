/* SPDX-License-Identifier: MIT */
/*
 * A convoy: who holds a lock for a short time loses its CPU, and all queue for the lock.
 * From: Blasgen, Gray, Mitoma, Price, "The convoy phenomenon", 1979.
 *
 * Truth: "daemon" is released within the 20 us in which "first" holds the lock, just
 * before "control" asks for it. Without daemon, control takes at most about 70 us.
 */
#include "periodic.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void control(void)
{
	spin_us(20);
	locked_us(&lock, 5);
}

static void worker(void)
{
	spin_us(30);
	locked_us(&lock, 20);
	spin_us(20);
}

static void daemon_cycle(void)
{
	spin_us(200);
}

int main(void)
{
	static const struct periodic all[] = {
		{ "second", 30, 1, 2000, worker },
		{ "first", 40, 1, 2000, worker },
		{ "daemon", 60, 1, 4000, daemon_cycle },
		{ "control", 80, 0, 1000, control },
	};

	run_all(all, 4);
}
