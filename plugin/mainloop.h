/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mainloop - lets QEMU's main loop do nothing while a CPU executes.
 *
 * QEMU has a thread that executes all CPUs and one, the main loop, that moves the clock
 * on while all of them are idle. Both run timers that have come due. Left alone, the main
 * loop does so when the host lets it: it can take a CPU for idle whose last instructions
 * are not counted yet, and move the clock too far; it can raise an interrupt in the
 * middle of a quantum that was to end before. Both are rare, more frequent on a busy host,
 * and make two boots with equal inputs differ.
 *
 * So the main loop gets QEMU's big lock only while the CPUs' thread waits: the two take
 * quanta, and what they do is in one order on every host.
 */
#ifndef MAINLOOP_H
#define MAINLOOP_H

#include <stdbool.h>

/* In QEMU's main thread, before there is a CPU. */
void mainloop_init(void);

/* In the CPUs' thread, before it executes anything. */
void mainloop_at_cpu(void);

/* QEMU's end is asked for, or is under way. */
bool mainloop_is_to_end(void);

#endif
