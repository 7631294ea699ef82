/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "histfile.h"

#include <inttypes.h>

void histfile_write(FILE *file, const struct hist *h)
{
	const char *comma = "";

	fprintf(file,
		"{\"overflow\": %" PRIu64 ", \"min_ns\": %" PRId64
		", \"max_ns\": %" PRId64 ", \"sum_ns\": %" PRIu64
		", \"sum_sq_ns2\": [%" PRIu64 ", %" PRIu64 "], \"histogram\": [",
		hist_peek(&h->overflow), h->min_ns, h->max_ns, h->sum_ns.low,
		h->sum_sq_ns2.high, h->sum_sq_ns2.low);
	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		uint64_t count = hist_peek(&h->count[i]);

		if (!count)
			continue;
		fprintf(file, "%s[%" PRId64 ", %" PRIu64 "]", comma,
			hist_bucket_low_ns(i), count);
		comma = ", ";
	}
	fputs("]}", file);
}
