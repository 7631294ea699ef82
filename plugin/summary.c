/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "summary.h"

#include <inttypes.h>
#include <stdio.h>

#include "cpus.h"
#include "parts.h"

static struct {
	bool taken;
	uint64_t all, of_cpu[CPUS_MAX], quanta_ended;
} counts;

void summary_take_counts(void)
{
	if (counts.taken)
		return;
	counts.taken = true;
	counts.all = cpus_all_executed();
	for (unsigned int i = 0; i < cpus.count; i++)
		counts.of_cpu[i] = cpus_executed(&cpus.cpu[i]);
	counts.quanta_ended = cpus.quanta_ended;
}

void summary_write(const char *path, uint64_t quantum, const struct marks *marks,
		   bool parts)
{
	FILE *file = fopen(path, "w");

	if (!file) {
		perror("rtscope-plugin: summary");
		return;
	}
	summary_take_counts();
	fprintf(file,
		"{\"schema\": 2, \"quantum\": %" PRIu64 ", \"instructions\": %" PRIu64
		", \"per_cpu\": [",
		quantum, counts.all);
	for (unsigned int i = 0; i < cpus.count; i++)
		fprintf(file, "%s%" PRIu64, i ? ", " : "", counts.of_cpu[i]);
	fprintf(file,
		"], \"quanta_ended\": %" PRIu64 ", \"marks\": %" PRIu64
		", \"last_mark\": %" PRIu64 ", \"last_mark_in_programs\": %" PRIu64,
		counts.quanta_ended, marks->count, marks->last,
		marks->last_in_programs);
	if (parts)
		parts_write(file);
	fputs("}\n", file);
	if (ferror(file) | fclose(file))
		fprintf(stderr, "rtscope-plugin: cannot write %s\n", path);
}
