/* SPDX-License-Identifier: MIT */
#include "trace/tracepage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COMMIT_MASK   ((1u << 27) - 1)
#define MISSED_EVENTS (1u << 31)

#define DELTA_BITS 27
#define DELTA_MASK ((1u << DELTA_BITS) - 1)

/* Types of an event; up to 28 they are its length in words. */
enum { LENGTH_FOLLOWS = 0, PADDING = 29, TIME_EXTEND = 30, TIME_STAMP = 31 };

#define MAX_PAGE_SIZE (1u << 20)

static int field(const char *text, const char *name, unsigned int *at,
		 unsigned int *size)
{
	char wanted[32];
	const char *line, *offset, *length;

	snprintf(wanted, sizeof(wanted), " %s;", name);
	line = strstr(text, wanted);
	offset = line ? strstr(line, "offset:") : NULL;
	length = line ? strstr(line, "size:") : NULL;
	if (!offset || !length || sscanf(offset, "offset:%u", at) != 1 ||
	    sscanf(length, "size:%u", size) != 1)
		return -EINVAL;
	return 0;
}

int tracepage_layout(const char *header_page, struct tracepage_layout *out)
{
	unsigned int time_size, data_size;

	if (field(header_page, "timestamp", &out->time_at, &time_size) ||
	    field(header_page, "commit", &out->commit_at, &out->commit_size) ||
	    field(header_page, "data", &out->data_at, &data_size))
		return -EINVAL;
	if (time_size != 8 || (out->commit_size != 4 && out->commit_size != 8) ||
	    data_size > MAX_PAGE_SIZE || out->data_at > 64 || out->time_at > 64 ||
	    out->commit_at > 64 || out->time_at + 8 > out->data_at ||
	    out->commit_at + out->commit_size > out->data_at)
		return -EINVAL;
	out->page_size = out->data_at + data_size;
	return 0;
}

static uint32_t word_at(const unsigned char *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* The size of an event with its head; 0 if it is none. Adds to the time. */
static uint32_t step(const unsigned char *event, uint32_t room, uint64_t *time,
		     bool *is_event)
{
	uint32_t head = word_at(event), type = head & 31, delta = head >> 5;
	uint32_t next = room >= 8 ? word_at(event + 4) : 0;

	*is_event = false;
	switch (type) {
	case PADDING:
		if (delta == 0)
			return room; /* the rest of the page is empty */
		*time += delta;
		/* events are whole words: the next head is one */
		return room >= 8 && next <= room && !(next & 3) ? 4 + next : 0;
	case TIME_EXTEND:
		*time += ((uint64_t)next << DELTA_BITS) + delta;
		return 8;
	case TIME_STAMP: /* 59 bits of it; the rest does not change in 18 years */
		*time = (*time >> 59 << 59) | ((uint64_t)next << DELTA_BITS) | delta;
		return 8;
	case LENGTH_FOLLOWS:
		*time += delta;
		*is_event = true;
		return room >= 8 && next <= room ? 4 + ((next + 3) & ~3u) : 0;
	default:
		*time += delta;
		*is_event = true;
		return 4 + 4 * type;
	}
}

int tracepage_span(const struct tracepage_layout *layout, const unsigned char *page,
		   struct tracepage_span *out)
{
	const unsigned char *data = page + layout->data_at;
	uint32_t commit = word_at(page + layout->commit_at);
	uint32_t used = commit & COMMIT_MASK;
	uint64_t time;

	if (used > layout->page_size - layout->data_at || used & 3)
		return -EINVAL;
	memcpy(&time, page + layout->time_at, sizeof(time));
	*out = (struct tracepage_span){
		.first_ns = (int64_t)time,
		.missed = commit & MISSED_EVENTS,
	};
	for (uint32_t at = 0, size; at < used; at += size) {
		bool is_event;

		size = step(data + at, used - at, &time, &is_event);
		if (size == 0 || size > used - at)
			return -EINVAL;
		out->events += is_event;
	}
	out->last_ns = (int64_t)time;
	return 0;
}

void tracepage_events(const struct tracepage_layout *layout, const unsigned char *page,
		      tracepage_take *take, void *context)
{
	const unsigned char *data = page + layout->data_at;
	uint32_t used = word_at(page + layout->commit_at) & COMMIT_MASK;
	uint64_t time;

	if (used > layout->page_size - layout->data_at || used & 3)
		return;
	memcpy(&time, page + layout->time_at, sizeof(time));
	for (uint32_t at = 0, size; at < used; at += size) {
		uint32_t head;
		bool is_event;

		size = step(data + at, used - at, &time, &is_event);
		if (size == 0 || size > used - at)
			return;
		/* a length that follows the head is one word more */
		head = (word_at(data + at) & 31) == LENGTH_FOLLOWS ? 8 : 4;
		if (is_event && size > head)
			take(context, (int64_t)time, data + at + head, size - head);
	}
}
