/* SPDX-License-Identifier: MIT */
/*
 * tracepage - what a raw page of the kernel's trace ring says of itself: which time it
 * covers, and whether events are missing before it. Pure.
 *
 * The form is that of include/linux/ring_buffer.h; where its fields lie is read from the
 * kernel's own events/header_page, since it differs between 32 and 64 bits.
 */
#ifndef TRACEPAGE_H
#define TRACEPAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tracepage_layout {
	unsigned int time_at;
	unsigned int commit_at, commit_size;
	unsigned int data_at;
	unsigned int page_size;
};

struct tracepage_span {
	int64_t first_ns, last_ns; /* of the events in it, by the trace clock */
	uint32_t events;
	bool missed; /* the kernel has overwritten events before this page */
};

/* Reads events/header_page. Returns 0, or -EINVAL for a form that is not known. */
int tracepage_layout(const char *header_page, struct tracepage_layout *out);

/* Returns 0, or -EINVAL for a page that breaks its own form; never reads beyond it. */
int tracepage_span(const struct tracepage_layout *layout, const unsigned char *page,
		   struct tracepage_span *out);

/* Gives each event of a page to `take`: its time, and its bytes from the common fields
 * on. Ends where the page breaks its form. */
typedef void tracepage_take(void *context, int64_t at_ns, const unsigned char *event,
			    uint32_t size);
void tracepage_events(const struct tracepage_layout *layout, const unsigned char *page,
		      tracepage_take *take, void *context);

#endif
