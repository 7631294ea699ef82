/* SPDX-License-Identifier: MIT */
/*
 * randomseed - random numbers at once on a virtual board, as on a machine that is up.
 *
 * A board gives its kernel so little to make a seed from that the first getrandom() of
 * a program computes for a virtual second or more; how long depends on every byte of the
 * board.
 */
#ifndef RANDOMSEED_H
#define RANDOMSEED_H

#include <stdint.h>

/* Gives the kernel a seed that is made of a number, and so the same in each boot.
 * Without the right for it nothing changes: the kernel then makes one itself. */
void randomseed_give(int64_t number);

#endif
