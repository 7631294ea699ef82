/* SPDX-License-Identifier: MIT */
/* wakeupline - how a wake-up begins wherever the result tells one. */
#ifndef WAKEUPLINE_H
#define WAKEUPLINE_H

#include "host/emit.h"
#include "trace/worst.h"

/* cpu < 0: the thread was not bound to one; told as null. */
void wakeupline_emit_cpu(struct emit *e, int cpu);

/* Emits cpu, seq, expiry_ns and wake_ns into the open object. */
void wakeupline_emit(struct emit *e, int cpu, const struct wakeup *w);

#endif
