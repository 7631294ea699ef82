/* SPDX-License-Identifier: MIT */
#include "measure/growth.h"

#include <stdlib.h>
#include <string.h>

#include "measure/histline.h"
#include "trace/wakeupline.h"

struct growth *growth_alloc(unsigned int n)
{
	struct growth *g = malloc(n * sizeof(*g));

	if (g)
		memset(g, 0, n * sizeof(*g));
	return g;
}

/* Up to the maximum: most of the 200 KB need not be read. A count beyond it is of a sample
 * whose maximum was not seen yet, and told with that, a second later. */
static unsigned int buckets_used(int64_t max_ns)
{
	return max_ns >> HIST_MAX_BITS ? HIST_BUCKETS
				       : hist_bucket((uint64_t)max_ns) + 1;
}

static void emit_one(struct growth *g, const struct sampler *s, struct emit *out)
{
	wakeupline_emit_cpu(out, s->cpu);
	emit_int(out, "missed_periods",
		 (int64_t)hist_peek(&s->progress.missed_periods));
	emit_int(out, "early", (int64_t)hist_peek(&s->hist.early));
	emit_int(out, "overflow", (int64_t)hist_peek(&s->hist.overflow));
	emit_int(out, "max_ns", g->max_ns);
	emit_open(out, "histogram", '[');
	for (unsigned int i = 0; i < buckets_used(g->max_ns); i++) {
		uint64_t count = hist_peek(&s->hist.count[i]);

		histline_emit_bucket(out, i, count - g->told[i]);
		g->told[i] = count;
	}
	emit_close(out, ']');
}

void growth_emit(struct growth *g, const struct sampler *s, const int64_t *max_ns,
		 unsigned int n, struct emit *out)
{
	emit_begin(out, "growth");
	emit_open(out, "cpus", '[');
	for (unsigned int i = 0; i < n; i++) {
		if (max_ns[i] > g[i].max_ns)
			g[i].max_ns = max_ns[i];
		emit_open(out, NULL, '{');
		emit_one(&g[i], &s[i], out);
		emit_close(out, '}');
	}
	emit_close(out, ']');
	emit_end_later(out);
}
