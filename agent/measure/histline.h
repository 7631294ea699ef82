/* SPDX-License-Identifier: MIT */
/* histline - a bucket of a histogram in a line for the host: one form wherever. */
#ifndef HISTLINE_H
#define HISTLINE_H

#include "host/emit.h"
#include "measure/hist.h"

/* Its pair in the list that is open; nothing for a count of 0. */
static inline void histline_emit_bucket(struct emit *e, unsigned int bucket,
					uint64_t count)
{
	if (!count)
		return;
	emit_open(e, NULL, '[');
	emit_int(e, NULL, hist_bucket_low_ns(bucket));
	emit_int(e, NULL, (int64_t)count);
	emit_close(e, ']');
}

#endif
