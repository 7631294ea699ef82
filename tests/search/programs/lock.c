/* SPDX-License-Identifier: MIT */
/* A lock that a logger holds at one instant of 8 ms: the control loop seldom asks then. */
#include "periodic.h"

static pthread_mutex_t lock;

static void control(void)
{
	spin_us(30);
	locked_us(&lock, 5);
}

static void logger(void)
{
	spin_us(200);
	locked_us(&lock, 40);
	spin_us(100);
}

int main(void)
{
	static const struct periodic all[] = {
		{ "control", 90, 1, 1000, control },
		{ "logger", 10, 0, 8000, logger },
	};

	inheriting(&lock);
	run_all(all, 2);
}
