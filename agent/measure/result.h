/* SPDX-License-Identifier: MIT */
/* result - the lines that a measurement writes: hello, started, tick, worst, result. */
#ifndef RESULT_H
#define RESULT_H

#include "host/emit.h"
#include "measure/run.h"

void result_emit_hello(const struct run *run, struct emit *out);

/* What a record needs of a run whose result never comes; after its threads were let go. */
void result_emit_started(const struct run *run, struct emit *out);

/* Also the new maxima and the kernel's messages since the last call. */
void result_emit_tick(struct run *run, struct emit *out, int64_t t_ns);

/* Returns 0 or -errno. */
int result_emit(struct run *run, struct emit *out);

#endif
