/* SPDX-License-Identifier: MIT */
/*
 * Chained blocking: with inheritance, but no priority ceiling, a thread that takes two
 * locks one after the other can wait for both holders. From: Sha, Rajkumar, Lehoczky,
 * "Priority inheritance protocols", 1990, section III.
 *
 * Truth: "middle" is released while "low" is in its 200 us with lock b, and "high" while
 * middle is in its 200 us with lock a. One lock alone costs high at most about 250 us.
 */
#include "periodic.h"

static pthread_mutex_t a, b;

static void high(void)
{
	spin_us(10);
	locked_us(&a, 5);
	locked_us(&b, 5);
}

static void middle(void)
{
	spin_us(20);
	locked_us(&a, 200);
	spin_us(20);
}

static void low(void)
{
	spin_us(50);
	locked_us(&b, 200);
	spin_us(50);
}

int main(void)
{
	static const struct periodic all[] = {
		{ "low", 20, 0, 4000, low },
		{ "middle", 50, 0, 2000, middle },
		{ "high", 80, 0, 1000, high },
	};

	inheriting(&a);
	inheriting(&b);
	run_all(all, 3);
}
