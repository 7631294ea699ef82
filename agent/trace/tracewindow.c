/* SPDX-License-Identifier: MIT */
#include "trace/tracewindow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int64_t latency_ns(const struct trace_kept *k)
{
	return k->wakeup.wake_ns - k->wakeup.expiry_ns;
}

int tracewindow_init(struct tracewindow *w, const struct tracepage_layout *layout,
		     unsigned int cpus, unsigned int limit, uint32_t pool_pages)
{
	*w = (struct tracewindow){
		.layout = *layout,
		.cpus = cpus,
		.limit = limit < WORST_MAX ? limit : WORST_MAX,
		.pool_pages = pool_pages,
		/* half of them for the windows, the other half for what is kept */
		.ring_pages = pool_pages / 2 / cpus,
		.pages_max = pool_pages / 4,
	};
	w->bytes = calloc(pool_pages, layout->page_size);
	w->page = calloc(pool_pages, sizeof(*w->page));
	w->next_free = calloc(pool_pages, sizeof(*w->next_free));
	w->ring = calloc(cpus, sizeof(*w->ring));
	if (!w->bytes || !w->page || !w->next_free || !w->ring || w->ring_pages < 2)
		goto out_free;
	for (unsigned int i = 0; i < cpus; i++) {
		w->ring[i].page = calloc(w->ring_pages, sizeof(uint32_t));
		if (!w->ring[i].page)
			goto out_free;
		w->ring[i].gone_ns = INT64_MIN;
		w->ring[i].last_ns = INT64_MIN;
	}
	for (unsigned int i = 0; i < w->limit; i++) {
		w->kept[i].page = calloc(w->pages_max, sizeof(uint32_t));
		if (!w->kept[i].page)
			goto out_free;
	}
	for (uint32_t i = 0; i < pool_pages; i++)
		w->next_free[i] = i + 1 < pool_pages ? i + 1 : TRACEWINDOW_NONE;
	return 0;

out_free:
	tracewindow_free(w);
	return -ENOMEM;
}

void tracewindow_free(struct tracewindow *w)
{
	for (unsigned int i = 0; w->ring && i < w->cpus; i++)
		free(w->ring[i].page);
	for (unsigned int i = 0; i < w->limit; i++)
		free(w->kept[i].page);
	free(w->ring);
	free(w->next_free);
	free(w->page);
	free(w->bytes);
	*w = (struct tracewindow){ 0 };
}

static void let_go(struct tracewindow *w, uint32_t page)
{
	if (--w->page[page].refs > 0)
		return;
	w->next_free[page] = w->free_head;
	w->free_head = page;
}

static void forget_pages(struct tracewindow *w, struct trace_kept *k)
{
	while (k->pages > 0)
		let_go(w, k->page[--k->pages]);
}

static void drop_oldest(struct tracewindow *w, struct trace_ring *r)
{
	uint32_t page = r->page[r->head];

	r->gone_ns = w->page[page].span.last_ns;
	r->head = (r->head + 1) % w->ring_pages;
	r->count--;
	let_go(w, page);
}

/* Of the kept ones the least goes first. Half of the pool is the windows', so that
 * this ends before there is nothing left to give up. */
static void make_room(struct tracewindow *w)
{
	for (unsigned int i = w->count; i > 0 && w->free_head == TRACEWINDOW_NONE;
	     i--) {
		if (w->kept[i - 1].pages == 0)
			continue;
		forget_pages(w, &w->kept[i - 1]);
		w->kept[i - 1].given_up = true;
	}
}

unsigned char *tracewindow_place(struct tracewindow *w, unsigned int cpu)
{
	struct trace_ring *r = &w->ring[cpu];

	if (r->count == w->ring_pages)
		drop_oldest(w, r);
	if (w->free_head == TRACEWINDOW_NONE)
		make_room(w);
	return w->bytes + (size_t)w->free_head * w->layout.page_size;
}

static bool concerns(const struct trace_kept *k, const struct tracepage_span *span)
{
	return !k->given_up && span->last_ns >= k->from_ns &&
	       span->first_ns <= k->to_ns;
}

static void keep(struct tracewindow *w, struct trace_kept *k, uint32_t page)
{
	struct trace_page *p = &w->page[page];

	if (k->pages >= (p->cpu == k->own ? w->pages_max : w->pages_max / 2)) {
		k->truncated = true;
		return;
	}
	k->page[k->pages++] = page;
	p->refs++;
}

/* A gap may hold all that is wanted, so that neither page beside it does. */
static void look_at(struct tracewindow *w, struct trace_kept *k, uint32_t page)
{
	const struct trace_page *p = &w->page[page];

	k->overwritten |= p->span.missed && p->span.first_ns > k->from_ns &&
			  p->before_ns <= k->to_ns;
	if (concerns(k, &p->span))
		keep(w, k, page);
}

void tracewindow_add(struct tracewindow *w, unsigned int cpu)
{
	struct trace_ring *r = &w->ring[cpu];
	uint32_t page = w->free_head;
	struct trace_page *p = &w->page[page];

	if (tracepage_span(&w->layout, tracewindow_bytes(w, page), &p->span)) {
		r->damaged++;
		r->hole = true;
		r->next_seq++;
		return;
	}
	w->free_head = w->next_free[page];
	p->cpu = cpu;
	p->refs = 1;
	p->seq = r->next_seq++;
	p->span.missed |= r->hole;
	r->hole = false;
	r->pages++;
	r->events += p->span.events;
	r->missed += p->span.missed;
	r->page[(r->head + r->count++) % w->ring_pages] = page;
	p->before_ns = r->last_ns;
	r->last_ns = p->span.last_ns;

	for (unsigned int i = 0; i < w->count; i++)
		look_at(w, &w->kept[i], page);
}

/* The place of a new one, worst first; the least one's room moves there with it. */
static struct trace_kept *insert(struct tracewindow *w, int64_t late_ns)
{
	struct trace_kept room;
	unsigned int place;

	if (w->count < w->limit) {
		place = w->count++;
	} else if (w->limit && late_ns > latency_ns(&w->kept[w->limit - 1])) {
		place = w->limit - 1;
		forget_pages(w, &w->kept[place]);
	} else {
		return NULL;
	}
	room = w->kept[place];
	for (; place > 0 && late_ns > latency_ns(&w->kept[place - 1]); place--)
		w->kept[place] = w->kept[place - 1];
	w->kept[place] = room;
	return &w->kept[place];
}

static void keep_of(struct tracewindow *w, struct trace_kept *k, unsigned int cpu)
{
	const struct trace_ring *r = &w->ring[cpu];

	k->truncated |= r->gone_ns >= k->from_ns;
	for (unsigned int i = 0; i < r->count; i++)
		look_at(w, k, r->page[(r->head + i) % w->ring_pages]);
}

void tracewindow_want(struct tracewindow *w, const struct trace_kept *wanted)
{
	struct trace_kept *k = insert(w, latency_ns(wanted));
	uint32_t *page;

	if (!k)
		return;
	page = k->page;
	*k = *wanted;
	k->page = page;
	k->pages = 0;
	if (k->own != TRACEWINDOW_NONE)
		keep_of(w, k, k->own);
	for (unsigned int cpu = 0; cpu < w->cpus; cpu++)
		if (cpu != k->own)
			keep_of(w, k, cpu);
}

const unsigned char *tracewindow_bytes(const struct tracewindow *w, uint32_t page)
{
	return w->bytes + (size_t)page * w->layout.page_size;
}
