/* SPDX-License-Identifier: MIT */
/*
 * applied - changes that outlive the process that made them, until they are asked back.
 *
 * They are first made through a journal, as all changes are: a process that is killed
 * before it has made all of them leaves none. Then the journal's entries move to the end
 * of one file, whole, by a rename; no start of an agent replays that one.
 */
#ifndef APPLIED_H
#define APPLIED_H

#include "journal/journal.h"

/* Moves what the journal holds. 0 or -errno; then it is still the journal's. */
int applied_keep(struct journal *j, const char *dir);

struct applied_visitor {
	journal_told *restored;
	void (*refused)(void *context, const struct journal_entry *entry, int err);
	void *context;
};

/* Puts back everything that was kept, the last change first, but what a running agent
 * has changed once more; that and what the kernel refuses stays in the file. Returns the
 * number of those, or -errno. */
int applied_restore(const char *dir, const char *root,
		    const struct applied_visitor *visitor);

#endif
