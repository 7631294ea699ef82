/* SPDX-License-Identifier: MIT */
/*
 * journal - what was changed on this machine and must be put back.
 *
 * Before a knob is changed, its name and old value go into a file of this process in a
 * directory that only root can write. The process holds a lock on the file for as long
 * as it lives; so a file without a lock was left by a process that was killed, and the
 * next start of any agent puts back what is in it.
 *
 * What is in such a file, journalfile.h says; what is to outlive its process, applied.h.
 */
#ifndef JOURNAL_H
#define JOURNAL_H

#include "journal/journalfile.h"
#include "journal/knob.h"

#define JOURNAL_DIR  "/run/rtscope"
#define JOURNAL_HELD (-EALREADY) /* another running agent has changed the knob */

struct journal {
	int fd; /* -1: nothing was changed yet */
	char path[128];
	long tried_at; /* where the entry of the last try begins; -1: it wrote none */
};

/* Called for each knob that was put back. */
typedef void journal_told(void *context, const struct journal_entry *entry);

void journal_init(struct journal *j);

/* Writes the knob's present value down, then sets it. Returns 0, -errno, JOURNAL_HELD
 * or KNOB_DID_NOT_HOLD. */
int journal_set_knob(struct journal *j, const char *dir, const struct knob_place *place,
		     const char *value);

/* After a try that failed: undoes what it may have changed, and strikes it out, as if it
 * had not been made. 0 or -errno; then it stays in the file. */
int journal_take_back(struct journal *j, const char *root);

/* Puts back everything, the last change first, and removes the file. Returns the number
 * of knobs that could not be put back; they stay in the file. told may be NULL. */
int journal_restore(struct journal *j, const char *root, journal_told *told,
		    void *context);

/* Restores what killed agents have left. Returns the number of knobs that could not be
 * put back, or -errno. */
int journal_replay(const char *dir, const char *root, journal_told *told,
		   void *context);

#endif
