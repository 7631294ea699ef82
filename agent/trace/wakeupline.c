/* SPDX-License-Identifier: MIT */
#include "trace/wakeupline.h"

void wakeupline_emit_cpu(struct emit *e, int cpu)
{
	if (cpu < 0)
		emit_null(e, "cpu");
	else
		emit_int(e, "cpu", cpu);
}

void wakeupline_emit(struct emit *e, int cpu, const struct wakeup *w)
{
	wakeupline_emit_cpu(e, cpu);
	emit_int(e, "seq", (int64_t)w->seq);
	emit_int(e, "expiry_ns", w->expiry_ns);
	emit_int(e, "wake_ns", w->wake_ns);
}
