/* SPDX-License-Identifier: MIT */
/*
 * Loops of several rates that meet: a thread takes longest when it is due together with
 * all that are more urgent. From: Liu, Layland, "Scheduling algorithms for
 * multiprogramming in a hard-real-time environment", 1973, on the critical instant.
 *
 * Truth: "sampler", "filter" and "motor" follow each other every 4 ms and take 150 us;
 * "control" is due at most 40 us before the first or 10 us after.
 */
#include "periodic.h"

static void sampler(void)
{
	spin_us(40);
}

static void filter(void)
{
	spin_us(60);
}

static void motor(void)
{
	spin_us(50);
}

static void control(void)
{
	spin_us(40);
}

int main(void)
{
	static const struct periodic all[] = {
		{ "control", 50, 0, 4000, control },
		{ "motor", 70, 0, 4000, motor },
		{ "filter", 80, 0, 4000, filter },
		{ "sampler", 90, 0, 2000, sampler },
	};

	run_all(all, 4);
}
