/* SPDX-License-Identifier: MIT */
/* events - the ways of a run's events: made before it, judged and closed after it. */
#ifndef EVENTS_H
#define EVENTS_H

#include "host/emit.h"
#include "measure/run.h"

/* Makes the ways, one for each thread that measures; none for the event timer. */
enum exit_status events_open(struct run *run, struct emit *out);

/* Says so if a way broke, or if nothing came through one. */
bool events_broken(struct run *run, struct emit *out);

void events_close(struct run *run);

#endif
