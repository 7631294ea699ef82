/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "trace.h"

_Static_assert(sizeof(struct trace_header) == 48 && sizeof(struct section) == 56 &&
		       sizeof(struct record) == 16,
	       "the structures are written as they are");

void trace_begin(FILE *file, const struct trace_header *header)
{
	fwrite(header, sizeof(*header), 1, file);
}

void trace_add(FILE *file, const struct path *path)
{
	fwrite(&path->section, sizeof(path->section), 1, file);
	fwrite(path->record, sizeof(path->record[0]), path->section.records, file);
}
