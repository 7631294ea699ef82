/* SPDX-License-Identifier: MIT */
/*
 * journalfile - the directory of the journals, and what is written in one.
 *
 * A line is "KNOB INDEX OLD": the knob's name from the closed list of knob.c, never a
 * path, so that a forged journal could at most set a knob that rtscope sets anyway.
 */
#ifndef JOURNALFILE_H
#define JOURNALFILE_H

#include <stdbool.h>

#include "journal/knob.h"

#define JOURNALFILE_PREFIX "journal."

struct journal_entry {
	char knob[KNOB_NAME_MAX];
	int index;
	char old[KNOB_VALUE_MAX];
};

/* The whole lines of a journal that are not taken yet; the rest of it is not there. */
struct journal_text {
	char *bytes;
	size_t size;
};

/* The directory must be ours alone: what is in it will be believed. 0 or -errno. */
int journalfile_make_dir(const char *dir);

/*
 * One agent at a time makes, changes or replays journals: otherwise one could replay and
 * remove a journal that another has just made, or two could take each other's value of a
 * knob for the old one. Returns a descriptor to close, or -errno.
 */
int journalfile_lock_dir(const char *dir);

/* 0 or -errno; the text is to be freed either way. A torn last line is left out: it was
 * never followed by a change. */
int journalfile_read(int fd, struct journal_text *text);
void journalfile_free(struct journal_text *text);

/* Takes the last entry off; false when none is left. What no agent wrote is skipped. */
bool journalfile_last(struct journal_text *text, struct journal_entry *entry);

/* Appends an entry and makes sure that it lasts. 0 or -errno. */
int journalfile_append(int fd, const struct journal_entry *entry);

/* Whether a journal of the directory other than `own` has an entry for the knob. */
bool journalfile_held(const char *dir, const char *own, const char *knob, int index);

/* Sets a knob back unless it has its old value already: a change that the kernel refused
 * has left nothing to put back, and a try at it would be refused as well, now and at
 * every later start. 0 or -errno. */
int journalfile_put_back(const char *root, const struct journal_entry *entry);

#endif
