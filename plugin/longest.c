/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "longest.h"

#include <stdio.h>
#include <stdlib.h>

#include "cpus.h"
#include "paths.h"

/* Before the section: who called what it is in. */
#define LEAD_NS 4000
/* 32 bytes each in the file */
#define MAX_INTERRUPTS (UINT64_C(1) << 22)
#define FIRST_RECORDS  4096

struct interrupts {
	struct record *record; /* two for each */
	uint64_t room, count, kept;
	bool lost;
};

static struct {
	struct path kept[CPUS_MAX][LONGEST_KINDS], offered[CPUS_MAX][LONGEST_KINDS];
	struct interrupts interrupts[CPUS_MAX];
	const struct path *written[CPUS_MAX * LONGEST_KINDS];
	struct path arrivals[CPUS_MAX];
	unsigned int count;
} longest;

static void drop(struct path *path)
{
	free(path->record);
	*path = (struct path){ 0 };
}

void longest_begin(unsigned int cpu)
{
	for (unsigned int kind = 0; kind < LONGEST_KINDS; kind++) {
		drop(&longest.kept[cpu][kind]);
		drop(&longest.offered[cpu][kind]);
	}
	longest.interrupts[cpu].count = 0;
}

void longest_offer(unsigned int cpu, enum longest_kind kind, struct stretch s)
{
	struct path *offered = &longest.offered[cpu][kind];
	uint64_t whole_ns = s.ended_ns - s.began_ns;
	uint64_t net_ns = whole_ns > s.interrupted_ns ? whole_ns - s.interrupted_ns : 0;
	struct section section = {
		.kind = SECTION_LONGEST,
		.cpu = cpu,
		.latency_ns = net_ns,
		.sequence = s.interrupted_ns << 8 | kind,
		.first = s.began_ns > LEAD_NS ? s.began_ns - LEAD_NS : 0,
		.last = s.ended_ns,
	};

	if (section.latency_ns <= offered->section.latency_ns ||
	    section.latency_ns <= longest.kept[cpu][kind].section.latency_ns)
		return;
	drop(offered);
	if (!paths_copy(section, offered)) {
		section.flags = SECTION_LEFT_OUT;
		offered->section = section;
	}
}

static void add(struct interrupts *in, struct record r)
{
	if (in->count == in->room) {
		in->room = in->room ? 2 * in->room : FIRST_RECORDS;
		in->record = realloc(in->record, in->room * sizeof(struct record));
		if (!in->record) {
			fprintf(stderr, "rtscope-plugin: no memory for interrupts\n");
			exit(1);
		}
	}
	in->record[in->count++] = r;
}

void longest_interrupt(unsigned int cpu, uint64_t vector, struct stretch s)
{
	struct interrupts *in = &longest.interrupts[cpu];

	if (in->count >= 2 * MAX_INTERRUPTS) {
		in->lost = true;
		return;
	}
	add(in, record_make(RECORD_INTERRUPT, cpu, s.began_ns, vector));
	add(in, record_make(RECORD_DURATION, cpu, s.began_ns,
			    s.ended_ns - s.began_ns - s.interrupted_ns));
}

void longest_keep(unsigned int cpu)
{
	for (unsigned int kind = 0; kind < LONGEST_KINDS; kind++) {
		struct path *offered = &longest.offered[cpu][kind];

		if (!offered->section.latency_ns)
			continue;
		drop(&longest.kept[cpu][kind]);
		longest.kept[cpu][kind] = *offered;
		*offered = (struct path){ 0 };
	}
	longest.interrupts[cpu].kept = longest.interrupts[cpu].count;
}

static void write_later(const struct path *path)
{
	longest.written[longest.count++] = path;
}

static void write_cpu(unsigned int cpu)
{
	const struct interrupts *in = &longest.interrupts[cpu];

	for (unsigned int kind = 0; kind < LONGEST_KINDS; kind++)
		if (longest.kept[cpu][kind].section.kind)
			write_later(&longest.kept[cpu][kind]);
	longest.arrivals[cpu] = (struct path){
		.section = { .kind = SECTION_INTERRUPTS,
			     .cpu = cpu,
			     .records = in->kept,
			     .flags = in->lost ? SECTION_LEFT_OUT : 0 },
		.record = in->record,
	};
	write_later(&longest.arrivals[cpu]);
}

unsigned int longest_count(void)
{
	longest.count = 0;
	for (unsigned int cpu = 0; cpu < cpus.count; cpu++)
		if (longest.kept[cpu][LONGEST_PSD].section.kind)
			write_cpu(cpu);
	return longest.count;
}

const struct path *longest_path(unsigned int i)
{
	return longest.written[i];
}
