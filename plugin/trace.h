/* SPDX-License-Identifier: GPL-2.0-or-later */
/* trace - writes the recorded paths to a file: see format/plugin.md. */
#ifndef TRACE_H
#define TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "record.h"

#define TRACE_VERSION 2

struct trace_header {
	char magic[8]; /* "RTSCOPE\n" */
	uint32_t version;
	uint32_t sections;
	char arch[16];
	uint32_t cpus;
	uint32_t shift;
	uint64_t quantum;
};

enum section_kind {
	SECTION_WORST = 1,
	SECTION_WINDOW = 2,
	SECTION_LONGEST = 3,
	SECTION_INTERRUPTS = 4,
};

#define SECTION_CUT UINT32_C(1) /* the ring did not reach back as far as it should */
#define SECTION_LEFT_OUT UINT32_C(2) /* no room for the records of this path */

struct section {
	uint32_t kind;
	uint32_t cpu;
	uint64_t latency_ns;
	uint64_t sequence;
	uint64_t first; /* virtual ns: where it begins, and of the mark */
	uint64_t last;
	uint64_t records;
	uint32_t flags;
	uint32_t reserved;
};

/* A section with its records. */
struct path {
	struct section section;
	struct record *record;
};

void trace_begin(FILE *file, const struct trace_header *header);
void trace_add(FILE *file, const struct path *path);

#endif
