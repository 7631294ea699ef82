/* SPDX-License-Identifier: MIT */
/*
 * serialline - the settings of a serial line (ttyS), as a text that can be put back.
 *
 * That is its termios, and whether its UART returns to itself what it sends.
 */
#ifndef SERIALLINE_H
#define SERIALLINE_H

#include <stdbool.h>
#include <stddef.h>

/* All return 0 or -errno. The texts have letters, digits and dots, fewer than size. */
int serialline_read(int number, char *text, size_t size);
int serialline_write(int number, const char *text);

/* The settings of a line for bytes one by one at 115,200 bit/s, from its present ones. */
int serialline_raw(const char *present, bool loop, char *text, size_t size);

#endif
