/* SPDX-License-Identifier: GPL-2.0-or-later */
/* paths - what the ring still knows of a stretch of time, copied for good. */
#ifndef PATHS_H
#define PATHS_H

#include <stdbool.h>

#include "trace.h"

/* Completes the section, of which `first` says from where the records are wanted, with
 * all records from there until now. False: no memory; nothing is kept. */
bool paths_copy(struct section section, struct path *out);

/* From when on a path from `at_ns` shows who has interrupts off there: where they went
 * off on each CPU, unless that slept meanwhile, or it is more than `most_ns` before. */
uint64_t paths_since_off(uint64_t at_ns, uint64_t most_ns);

#endif
