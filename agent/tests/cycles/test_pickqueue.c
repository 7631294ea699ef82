/* SPDX-License-Identifier: MIT */
/* The events of all CPUs in order; what has no room is told. */
#include "cycles/pickqueue.h"

#include "tests/check.h"

static struct pick place[4], given[8];
static unsigned int count;

static void keep(void *context, const struct pick *pick)
{
	(void)context;
	CHECK(count < 8);
	given[count++] = *pick;
}

static struct pickqueue fresh_queue(void)
{
	count = 0;
	return (struct pickqueue){ .pick = place, .most = 4 };
}

static void add(struct pickqueue *q, int64_t at_ns, uint64_t seq)
{
	pickqueue_add(q, &(struct pick){ .at_ns = at_ns, .kind = PICK_IN, .seq = seq });
}

static void events_come_in_order_and_later_ones_stay(void)
{
	struct pickqueue q = fresh_queue();

	add(&q, 30, 1);
	add(&q, 10, 3);
	add(&q, 10, 2);
	pickqueue_give(&q, 30, keep, NULL);
	CHECK(count == 2 && given[0].seq == 2 && given[1].seq == 3);
	pickqueue_give(&q, 31, keep, NULL);
	CHECK(count == 3 && given[2].at_ns == 30 && q.losses == 0);
}

static void what_has_no_room_is_one_loss_from_its_first_to_its_last(void)
{
	struct pickqueue q = fresh_queue();

	for (int64_t at_ns = 10; at_ns <= 60; at_ns += 10)
		add(&q, at_ns, (uint64_t)at_ns);
	add(&q, 35, 70); /* of another CPU */
	pickqueue_give(&q, 100, keep, NULL);
	CHECK(count == 4 && q.losses == 1);
	CHECK(given[3].kind == PICK_LOST);
	CHECK(given[3].at_ns == 35 && given[3].when_ns == 60);
	add(&q, 110, 110);
	pickqueue_give(&q, 200, keep, NULL);
	CHECK(count == 5 && given[4].kind == PICK_IN && q.losses == 1);
}

static void a_loss_of_the_kernel_that_has_no_room_keeps_its_end(void)
{
	struct pickqueue q = fresh_queue();

	for (int64_t at_ns = 10; at_ns <= 40; at_ns += 10)
		add(&q, at_ns, (uint64_t)at_ns);
	pickqueue_add(&q,
		      &(struct pick){ .at_ns = 45, .kind = PICK_LOST, .when_ns = 90 });
	pickqueue_give(&q, 100, keep, NULL);
	CHECK(given[3].kind == PICK_LOST && given[3].when_ns == 90);
}

int main(void)
{
	events_come_in_order_and_later_ones_stay();
	what_has_no_room_is_one_loss_from_its_first_to_its_last();
	a_loss_of_the_kernel_that_has_no_room_keeps_its_end();
	return 0;
}
