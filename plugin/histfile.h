/* SPDX-License-Identifier: GPL-2.0-or-later */
/* histfile - a histogram as an object of JSON. */
#ifndef HISTFILE_H
#define HISTFILE_H

#include <stdio.h>

#include "../agent/measure/hist.h"

void histfile_write(FILE *file, const struct hist *h);

#endif
