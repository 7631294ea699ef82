/* SPDX-License-Identifier: MIT */
/* tracereport - what a tracer has kept, as lines for the host. */
#ifndef TRACEREPORT_H
#define TRACEREPORT_H

#include "host/emit.h"
#include "trace/counterdeltas.h"
#include "trace/tracer.h"

/* Emits trace-file lines with what a reader of the pages needs, and trace-pages lines
 * with the pages of each CPU, in order. */
void tracereport_emit_trace(const struct tracer *t, struct emit *out);

/* Emits `tracing` of the result: what was on, what was not there, what was lost, and what
 * is known without. */
void tracereport_emit_summary(const struct tracer *t,
			      const struct counterdeltas *deltas, struct emit *out);

#endif
