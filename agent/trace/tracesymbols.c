/* SPDX-License-Identifier: MIT */
#include "trace/tracesymbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Longer is no function: the word lies in the gap before the modules, or behind all. */
#define MAX_FUNCTION (256 * 1024)

static int by_address(const void *a, const void *b)
{
	const struct trace_symbol *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* "ffffffff81000000 T _stext": code is t, T, w or W. */
static void read_line(struct tracesymbols *s, const char *line)
{
	char *end;
	uint64_t address = strtoull(line, &end, 16);

	if (*end != ' ' || !address || !strchr("tTwW", end[1]) || end[2] != ' ')
		return;
	if (strncmp(end + 3, "_stext\n", 7) == 0)
		s->stext = address;
	s->symbol[s->count++] = (struct trace_symbol){ address, line };
}

int tracesymbols_init(struct tracesymbols *s, char *text)
{
	size_t lines = 0;

	*s = (struct tracesymbols){ .text = text };
	for (const char *c = text; (c = strchr(c, '\n')); c++)
		lines++;
	if (!lines)
		return -ENOENT;
	s->symbol = calloc(lines, sizeof(*s->symbol));
	s->used = calloc(lines, 1);
	if (!s->symbol || !s->used) {
		tracesymbols_free(s);
		return -ENOMEM;
	}
	for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
		read_line(s, line);
	if (!s->count) {
		tracesymbols_free(s);
		return -ENOENT;
	}
	qsort(s->symbol, s->count, sizeof(*s->symbol), by_address);
	return 0;
}

void tracesymbols_free(struct tracesymbols *s)
{
	free(s->symbol);
	free(s->used);
	*s = (struct tracesymbols){ 0 };
}

static void mark(struct tracesymbols *s, uint64_t address)
{
	size_t low = 0, high = s->count;

	if (address < s->symbol[0].address)
		return;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (s->symbol[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	if (address - s->symbol[low].address < MAX_FUNCTION)
		s->used[low] = 1;
}

void tracesymbols_mark(struct tracesymbols *s, const unsigned char *bytes, size_t size,
		       unsigned int word, int offsets)
{
	/* fields are aligned in their event, and events to 4 bytes */
	for (size_t at = 0; at + 4 <= size; at += 4) {
		uint64_t wide = 0;
		uint32_t narrow;

		memcpy(&narrow, bytes + at, sizeof(narrow));
		if (word == 4)
			mark(s, narrow);
		else if (at + 8 <= size) {
			memcpy(&wide, bytes + at, sizeof(wide));
			mark(s, wide);
		}
		if (offsets && s->stext && narrow)
			mark(s, s->stext + narrow);
	}
}

size_t tracesymbols_write(const struct tracesymbols *s, char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < s->count; i++) {
		const char *line = s->symbol[i].line;
		size_t size = (size_t)(strchr(line, '\n') - line) + 1;

		if (!s->used[i] && s->symbol[i].address != s->stext)
			continue;
		if (out)
			memcpy(out + used, line, size);
		used += size;
	}
	return used;
}
