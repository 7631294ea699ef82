/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "windows.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_RECORDS 4096

static struct {
	unsigned int count;
	unsigned int now; /* windows before it are over for all CPUs */
	unsigned int in;  /* of the last time asked for */
	struct path path[OPTIONS_WINDOWS];
	uint64_t room[OPTIONS_WINDOWS];
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

bool windows_contain(uint64_t at_ns, uint64_t now_ns)
{
	while (windows.now < windows.count &&
	       now_ns > windows.path[windows.now].section.last)
		windows.now++;
	windows.in = windows.now;
	while (windows.in < windows.count &&
	       at_ns > windows.path[windows.in].section.last)
		windows.in++;
	return windows.in < windows.count &&
	       at_ns >= windows.path[windows.in].section.first;
}

bool windows_is_empty(void)
{
	return !windows.path[windows.in].section.records;
}

void windows_add(struct record r)
{
	struct path *path = &windows.path[windows.in];
	uint64_t *room = &windows.room[windows.in];

	if (path->section.records == *room) {
		*room = *room ? 2 * *room : FIRST_RECORDS;
		path->record = realloc(path->record, *room * sizeof(struct record));
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
