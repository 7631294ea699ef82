/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "outsidefile.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "record.h"

#define VERSION        2
#define BUFFER_RECORDS 32768 /* 1 MiB */

struct header {
	char magic[8];
	uint32_t version;
	uint32_t cpus; /* with the kinds, known at the end */
	char arch[16];
	uint32_t shift;
	uint32_t kinds;
	uint64_t quantum;
	uint64_t zero[2];
};

static struct {
	FILE *file;
	uint64_t most, written, lost;
	unsigned int buffered;
	struct outside_record buffer[BUFFER_RECORDS];
} out;

int outsidefile_init(const struct options *options, const char *arch)
{
	struct header header = { .magic = "RTSCPROG",
				 .version = VERSION,
				 .shift = (uint32_t)options->shift,
				 .quantum = options->quantum };

	out.most = options->most;
	out.file = fopen(options->program, "wb");
	if (!out.file)
		return -errno;
	strncpy(header.arch, arch, sizeof(header.arch) - 1);
	return fwrite(&header, sizeof(header), 1, out.file) == 1 ? 0 : -EIO;
}

static void flush(void)
{
	fwrite(out.buffer, sizeof(out.buffer[0]), out.buffered, out.file);
	out.buffered = 0;
}

static void write_record(const struct outside_record *record)
{
	if (out.buffered == BUFFER_RECORDS)
		flush();
	out.buffer[out.buffered++] = *record;
	out.written++;
}

void outsidefile_put(enum outside_kind kind, unsigned int to_come,
		     const struct outside_record *record)
{
	struct outside_record stamped = *record;

	if (!outsidefile_has_room(1)) {
		out.lost++;
		return;
	}
	stamped.stamp = (uint64_t)kind << 56 | (uint64_t)cpus_index(cpus.now) << 48 |
			((uint64_t)clock_own_ns(to_come) & RECORD_AT_MASK);
	write_record(&stamped);
}

bool outsidefile_has_room(unsigned int records)
{
	return !out.lost && out.most - out.written >= records;
}

void outsidefile_put_payload(const void *payload, unsigned int records)
{
	const struct outside_record *record = payload;

	for (unsigned int i = 0; i < records; i++)
		write_record(record + i);
}

bool outsidefile_end(uint32_t count, uint32_t kinds)
{
	const struct outside_record lost = { .stamp = (uint64_t)OUTSIDE_LOST << 56,
					     .value = out.lost };

	if (out.lost)
		write_record(&lost);
	flush();
	return !fseek(out.file, offsetof(struct header, cpus), SEEK_SET) &&
	       fwrite(&count, sizeof(count), 1, out.file) == 1 &&
	       !fseek(out.file, offsetof(struct header, kinds), SEEK_SET) &&
	       fwrite(&kinds, sizeof(kinds), 1, out.file) == 1 && !ferror(out.file) &&
	       !fclose(out.file);
}
