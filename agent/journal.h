/* SPDX-License-Identifier: MIT */
/*
 * journal - what was changed on this machine and must be put back.
 *
 * Before a knob is changed, its name and old value go into a file of this process in a
 * directory that only root can write. The process holds a lock on the file for as long
 * as it lives; so a file without a lock was left by a process that was killed, and the
 * next start of any agent puts back what is in it.
 *
 * A line is "KNOB INDEX OLD": the knob's name from the closed list of knob.c, never a
 * path, so that a forged journal could at most set a knob that rtscope sets anyway.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include <stdbool.h>

#include "knob.h"

#define JOURNAL_DIR "/run/rtscope"

struct journal {
	int fd; /* -1: nothing was changed yet */
	char path[128];
};

void journal_init(struct journal *j);

/* Writes the knob's present value down, then sets it. Returns 0 or -errno; -EBUSY when
 * another running agent has changed the same knob. */
int journal_set_knob(struct journal *j, const char *dir, const struct knob_place *place,
		     const char *value);

/* Puts back everything, the last change first, and removes the file. Returns the number
 * of knobs that could not be put back; they stay in the file. */
int journal_restore(struct journal *j, const char *root);

/* Restores what killed agents have left. Calls told() for each knob put back. Returns
 * the number of knobs that could not be put back, or -errno. */
int journal_replay(const char *dir, const char *root,
		   void (*told)(void *context, const char *knob), void *context);

#endif
