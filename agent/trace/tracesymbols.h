/* SPDX-License-Identifier: MIT */
/*
 * tracesymbols - of the kernel's symbols those that a trace points into.
 *
 * All of /proc/kallsyms is ten megabytes; the pages around a few wake-ups name some
 * hundred functions. Every word of a page that lies in the kernel's text counts as one
 * that may be an address: a symbol too many does no harm.
 */
#ifndef TRACESYMBOLS_H
#define TRACESYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct trace_symbol {
	uint64_t address;
	const char *line; /* in the text: "ADDRESS TYPE NAME" up to its newline */
};

struct tracesymbols {
	char *text;                  /* of the caller */
	struct trace_symbol *symbol; /* of code alone, ascending */
	unsigned char *used;
	size_t count;
	uint64_t stext; /* what offsets of preemptirq events count from; 0: not known */
};

/* Reads the text of kallsyms, which must stay. Returns 0, -ENOENT if the kernel hides
 * the addresses, or -ENOMEM. */
int tracesymbols_init(struct tracesymbols *s, char *text);
void tracesymbols_free(struct tracesymbols *s);

/* Marks what the words in the bytes point into; `word` is 4 or 8, the size of a long.
 * With offsets also 32-bit words that count from the start of the text. */
void tracesymbols_mark(struct tracesymbols *s, const unsigned char *bytes, size_t size,
		       unsigned int word, int offsets);

/* Writes the marked lines, ascending. Returns their size; out NULL: only that. */
size_t tracesymbols_write(const struct tracesymbols *s, char *out);

#endif
