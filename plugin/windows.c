/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "windows.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_RECORDS 4096

static struct {
	unsigned int count, now; /* windows before `now` are over */
	struct path path[OPTIONS_WINDOWS];
	uint64_t room; /* of the current one */
} windows;

void windows_init(const struct options *options)
{
	windows.count = options->windows;
	for (unsigned int i = 0; i < options->windows; i++)
		windows.path[i].section = (struct section){
			.kind = SECTION_WINDOW,
			.first = options->window[i].first,
			.last = options->window[i].last,
		};
}

bool windows_contain(uint64_t at)
{
	while (windows.now < windows.count &&
	       at > windows.path[windows.now].section.last) {
		windows.now++;
		windows.room = 0;
	}
	return windows.now < windows.count &&
	       at >= windows.path[windows.now].section.first;
}

bool windows_is_empty(void)
{
	return !windows.path[windows.now].section.records;
}

void windows_add(struct record r)
{
	struct path *path = &windows.path[windows.now];

	if (path->section.records == windows.room) {
		windows.room = windows.room ? 2 * windows.room : FIRST_RECORDS;
		path->record =
			realloc(path->record, windows.room * sizeof(struct record));
		if (!path->record) {
			fprintf(stderr, "rtscope-plugin: no memory for the window\n");
			exit(1);
		}
	}
	path->record[path->section.records++] = r;
}

unsigned int windows_count(void)
{
	return windows.count;
}

const struct path *windows_path(unsigned int i)
{
	return &windows.path[i];
}
