/* SPDX-License-Identifier: MIT */
#include "watch/watchplaces.h"

#include "machine/pidnamespace.h"

#define STACK_BYTES (1 << 20) /* of each ring; 2^n */
#define FEW_CPUS    8
#define MANY_BYTES  (1 << 17) /* else: 8 MB for all */

static int make_rings(struct watchplaces *p)
{
	const size_t bytes = p->cpus <= FEW_CPUS ? STACK_BYTES : MANY_BYTES;
	int err = 0;

	for (unsigned int i = 0; !err && i < p->cpus; i++)
		err = perfring_make(&p->stacks[i], p->cpu[i], bytes);
	return err;
}

void watchplaces_open(struct watchplaces *p, const struct cpulist *online)
{
	*p = (struct watchplaces){ .err = 0 };
	for (int cpu = cpulist_next(online, 0); cpu >= 0 && !p->err;
	     cpu = cpulist_next(online, (unsigned int)cpu + 1)) {
		if (p->cpus < WATCHPLACES_MAX_CPUS)
			p->cpu[p->cpus++] = cpu;
		else
			p->err = WATCHPLACES_CPUS;
	}
	/* a filter would take another thread for this one */
	if (!p->err && !pidnamespace_is_first())
		p->err = WATCHPLACES_NAMESPACE;
	if (!p->err)
		p->err = make_rings(p);
	if (p->err)
		watchplaces_close(p);
}

bool watchplaces_have_room(const struct watchplaces *p, bool real_time)
{
	return !p->err &&
	       p->threads < (real_time ? WATCHPLACES_THREADS : WATCHPLACES_ORDINARY);
}

void watchplaces_close(struct watchplaces *p)
{
	for (unsigned int i = 0; i < p->cpus; i++)
		perfring_close(&p->stacks[i]);
	p->cpus = 0;
}
