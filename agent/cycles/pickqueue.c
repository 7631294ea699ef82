/* SPDX-License-Identifier: MIT */
#include "cycles/pickqueue.h"

#include <stdlib.h>
#include <string.h>

static int by_time(const void *a, const void *b)
{
	const struct pick *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* A loss of the kernel's that finds no room has an end, too. */
static void lose(struct pickqueue *q, const struct pick *pick)
{
	const int64_t to_ns = pick->kind == PICK_LOST ? pick->when_ns : pick->at_ns;

	if (!q->has_lost) {
		q->losses++;
		q->has_lost = true;
		q->lost = (struct pick){ .at_ns = pick->at_ns,
					 .kind = PICK_LOST,
					 .cpu = pick->cpu,
					 .when_ns = to_ns,
					 .seq = pick->seq };
	}
	if (pick->at_ns < q->lost.at_ns)
		q->lost.at_ns = pick->at_ns;
	if (to_ns > q->lost.when_ns)
		q->lost.when_ns = to_ns;
}

void pickqueue_add(struct pickqueue *q, const struct pick *pick)
{
	if (q->count + 1 < q->most)
		q->pick[q->count++] = *pick;
	else
		lose(q, pick);
}

void pickqueue_give(struct pickqueue *q, int64_t until_ns, cyclepick_take *take,
		    void *context)
{
	size_t given = 0;

	if (q->has_lost)
		q->pick[q->count++] = q->lost;
	q->has_lost = false;
	qsort(q->pick, q->count, sizeof(*q->pick), by_time);
	while (given < q->count && q->pick[given].at_ns < until_ns)
		take(context, &q->pick[given++]);
	memmove(q->pick, q->pick + given, (q->count - given) * sizeof(*q->pick));
	q->count -= given;
}
