/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * parts - how long each part of all wake-ups of the agent's measuring threads took, as
 * histograms. The guest does the same without it. See format/plugin.md.
 *
 * A thread is known by its name, and measured once it has marked a wake-up. A wake-up
 * begins when its timer is due, or when the thread that sends its events has read the
 * clock, and ends when the thread itself has. Its parts add up to its latency: at each
 * mark that is compared with the agent's own number.
 *
 * The thread's CPU counts its own time, and a wake-up begins its latency before its end.
 * Another CPU's time may be a quantum before or behind: a part that would be negative is
 * 0, and its neighbour has the rest.
 */
#ifndef PARTS_H
#define PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "arch.h"
#include "options.h"

/* Of a way from the sender to the receiver of an event, or from a timer. */
void parts_init(const struct options *options, const struct arch *arch);

/* Of the first CPU; returns NULL or the register that it lacks. */
const char *parts_registers(void);

/* What begins at an address: 0: nothing. */
unsigned int parts_hook_at(uint64_t address);

/* At the first instruction of a block with so many. */
void parts_at_hook(unsigned int hook, unsigned int instructions);

/* After clock_at_reading(). */
void parts_at_reading(bool of_program, unsigned int to_come);

/* Where the executing CPU's thread marks a wake-up. */
void parts_at_mark(uint64_t latency_ns);

/* Members of a JSON object, with a comma before them; nothing if there are none. */
void parts_write(FILE *file);

#endif
