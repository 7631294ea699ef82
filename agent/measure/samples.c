/* SPDX-License-Identifier: MIT */
#include "measure/samples.h"

#include <stdlib.h>

#include "trace/wakeupline.h"

#define PERIODS_PER_LINE 8192
#define MOST_BYTES       10 /* of a number of 64 bits, 7 in each byte */

struct samples *samples_alloc(unsigned int n, uint32_t room)
{
	struct samples *s = calloc(n, sizeof(*s));

	for (unsigned int i = 0; s && i < n; i++) {
		s[i].latency_ns = malloc(room * sizeof(*s[i].latency_ns));
		if (!s[i].latency_ns) {
			samples_free(s, n);
			return NULL;
		}
		s[i].room = room;
		for (uint32_t at = 0; at < room; at++)
			s[i].latency_ns[at] = SAMPLES_NONE;
	}
	return s;
}

void samples_free(struct samples *s, unsigned int n)
{
	for (unsigned int i = 0; s && i < n; i++)
		free(s[i].latency_ns);
	free(s);
}

static size_t put(unsigned char *to, uint64_t number)
{
	size_t n = 0;

	while (number >= 0x80) {
		to[n++] = (unsigned char)(number | 0x80);
		number >>= 7;
	}
	to[n++] = (unsigned char)number;
	return n;
}

/* 0 for a period without a wake-up, else 1 more than the zigzag of the difference from
 * the wake-up before: 0, -1, 1, -2, ... are 1, 2, 3, 4, ... */
static size_t put_period(unsigned char *to, int64_t latency_ns, int64_t *before_ns)
{
	int64_t by_ns;

	if (latency_ns == SAMPLES_NONE)
		return put(to, 0);
	by_ns = latency_ns - *before_ns;
	*before_ns = latency_ns;
	return put(to, (((uint64_t)by_ns << 1) ^ (uint64_t)(by_ns >> 63)) + 1);
}

void samples_emit(const struct samples *s, int cpu, uint32_t periods, struct emit *out)
{
	static unsigned char packed[PERIODS_PER_LINE * MOST_BYTES];
	int64_t before_ns = 0;

	if (periods > s->room)
		periods = s->room;
	for (uint32_t first = 0; first < periods; first += PERIODS_PER_LINE) {
		uint32_t left = periods - first;
		uint32_t count = left < PERIODS_PER_LINE ? left : PERIODS_PER_LINE;
		size_t size = 0;

		for (uint32_t i = 0; i < count; i++)
			size += put_period(packed + size, s->latency_ns[first + i],
					   &before_ns);
		emit_begin(out, "samples");
		wakeupline_emit_cpu(out, cpu);
		emit_int(out, "first", first);
		emit_int(out, "periods", count);
		emit_base64(out, "base64", packed, size);
		emit_end_later(out);
	}
}
