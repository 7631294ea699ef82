/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "requests.h"

#include <stddef.h>

#include "clock.h"
#include "cpus.h"
#include "icount.h"
#include "qemu.h"

#define CLASS_WORDS 64 /* of the class; it has fewer */

static void (*tell)(unsigned int cpu, uint64_t at_ns, uint64_t asked);

static void handle(void *identity, int mask)
{
	unsigned int asked = 0;

	while (asked < cpus.count && cpus.cpu[asked].identity != identity)
		asked++;
	if (asked < cpus.count && current_cpu && cpus_is_executing())
		tell(cpus_index(cpus.now), (uint64_t)clock_own_ns(0), asked);
	else if (asked < cpus.count)
		tell(asked, (uint64_t)virtual_clock.now_ns, asked | REQUESTS_BY_TIMER);
	icount_handle_interrupt(identity, mask);
}

const char *requests_watch(void (*told)(unsigned int cpu, uint64_t at_ns,
					uint64_t asked))
{
	qemu_interrupt_fn *word = object_class_by_name("tcg-accel-ops");

	for (unsigned int i = 0; word && i < CLASS_WORDS; i++)
		if (word[i] == icount_handle_interrupt) {
			tell = told;
			word[i] = handle;
			return NULL;
		}
	return "where it tells a CPU of an interrupt was not found";
}
