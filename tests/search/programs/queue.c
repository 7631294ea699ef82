/* SPDX-License-Identifier: MIT */
/*
 * A queue of a logger that blocks its callers when it is full, as the one of spdlog does
 * by default (async_overflow_policy::block in its wiki, "Asynchronous logging"); a burst
 * of messages fills it.
 *
 * Truth: "burst" comes after "writer" has emptied the queue and before "control" puts its
 * line into it, within 50 us of 4 ms. Else control takes at most about 100 us.
 */
#include "periodic.h"

#define ROOM 3

static pthread_mutex_t lock;
static pthread_cond_t emptied = PTHREAD_COND_INITIALIZER;
static int lines;

static void put(void)
{
	pthread_mutex_lock(&lock);
	while (lines == ROOM)
		pthread_cond_wait(&emptied, &lock);
	lines++;
	pthread_mutex_unlock(&lock);
}

static void control(void)
{
	spin_us(20);
	put();
}

static void burst(void)
{
	for (int i = 0; i < ROOM; i++) {
		spin_us(2);
		put();
	}
}

static void writer(void)
{
	pthread_mutex_lock(&lock);
	lines = 0;
	pthread_cond_broadcast(&emptied);
	pthread_mutex_unlock(&lock);
	spin_us(40);
}

int main(void)
{
	static const struct periodic all[] = {
		{ "writer", 10, 1, 500, writer },
		{ "burst", 60, 1, 4000, burst },
		{ "control", 80, 0, 4000, control },
	};

	inheriting(&lock);
	run_all(all, 3);
}
