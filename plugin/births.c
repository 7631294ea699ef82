/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "births.h"

static struct {
	const struct options *options;
	uint32_t starts;
	uint32_t count; /* threads of the latest start */
} births;

void births_init(const struct options *options)
{
	births.options = options;
}

void births_begin_start(struct thread *first)
{
	first->start = ++births.starts;
	first->number = births.count = 1;
}

/* A thread that an earlier start left behind has no number. */
void births_add(struct thread *child, uint32_t start)
{
	child->start = start;
	child->number = start == births.starts ? ++births.count : 0;
}

uint64_t births_hold_ns(struct thread *t, bool is_realtime, uint64_t now_ns)
{
	const struct options *o = births.options;

	if (t->born || (t->number != 1 && !is_realtime))
		return 0;
	t->born = true;
	for (unsigned int i = 0; i < o->phases; i++) {
		const struct phase *p = &o->phase[i];

		if (p->start == t->start && p->number == t->number)
			return (p->ns + p->period_ns - now_ns % p->period_ns) %
			       p->period_ns;
	}
	return 0;
}
