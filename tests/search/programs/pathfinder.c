/* SPDX-License-Identifier: MIT */
/*
 * Mars Pathfinder, 1997: a bus thread waits for a lock of the weather thread, which a
 * longer thread of a priority between theirs keeps from its CPU. From: Mike Jones, "What
 * really happened on Mars?", with the answer of Glenn Reeves. The lock has no inheritance.
 *
 * Truth: "comms" is released while "weather" is in its 150 us with the lock, and "bus"
 * asks before "weather" is back. Without comms, bus takes at most about 210 us.
 */
#include "periodic.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void bus(void)
{
	spin_us(20);
	locked_us(&lock, 10);
	spin_us(10);
}

static void comms(void)
{
	spin_us(400);
}

static void weather(void)
{
	spin_us(100);
	locked_us(&lock, 150);
	spin_us(50);
}

int main(void)
{
	static const struct periodic all[] = {
		{ "weather", 20, 0, 4000, weather },
		{ "comms", 50, 0, 4000, comms },
		{ "bus", 80, 0, 1000, bus },
	};

	run_all(all, 3);
}
