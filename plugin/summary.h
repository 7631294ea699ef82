/* SPDX-License-Identifier: GPL-2.0-or-later */
/* summary - what was counted, as one JSON object in a file: see format/plugin.md. */
#ifndef SUMMARY_H
#define SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

/* The agent's marks. */
struct marks {
	uint64_t count;
	uint64_t last;             /* instructions executed before it */
	uint64_t last_in_programs; /* those of them outside of the kernel */
};

/* Once the guest has ordered its end, before anything else executes: how much is executed
 * after that is the host's affair. Later calls change nothing. */
void summary_take_counts(void);

/* With `parts` also what parts_write() writes. */
void summary_write(const char *path, uint64_t quantum, const struct marks *marks,
		   bool parts);

#endif
