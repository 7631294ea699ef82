/* SPDX-License-Identifier: GPL-2.0-or-later */
/* summary - what was counted, as one JSON object in a file: see format/plugin.md. */
#ifndef SUMMARY_H
#define SUMMARY_H

#include <stdint.h>

/* marks: how many; last_mark: the instruction count of the last one. */
void summary_write(const char *path, uint64_t marks, uint64_t last_mark);

#endif
