/* SPDX-License-Identifier: MIT */
#include "trace/tracereport.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/counters.h"
#include "trace/tracesymbols.h"
#include "trace/wakeupline.h"

#define PAGES_PER_LINE 64

static void emit_trace_file(struct emit *out, const char *name, const char *bytes,
			    size_t size)
{
	emit_begin(out, "trace_file");
	emit_text(out, "name", name);
	emit_base64(out, "base64", bytes, size);
	emit_end_later(out);
}

static void emit_file(const struct tracer *t, struct emit *out, const char *name)
{
	char path[2 * TRACEFS_PATH];
	struct snapshot file;

	snprintf(path, sizeof(path), "%s/%s", t->tracefs, name);
	if (snapshot_take(path, &file))
		return; /* the host says what it lacks */
	emit_trace_file(out, name, file.text, file.size);
	snapshot_free(&file);
}

static void emit_formats(const struct tracer *t, struct emit *out)
{
	for (unsigned int i = 0; i < traceevents_count(); i++) {
		char name[128];

		if (t->events.err[i])
			continue;
		snprintf(name, sizeof(name), "events/%s/%s/format",
			 trace_events[i].system, trace_events[i].name);
		emit_file(t, out, name);
	}
}

static int by_cpu_and_seq(const void *a, const void *b)
{
	const struct trace_page *x = *(struct trace_page *const *)a;
	const struct trace_page *y = *(struct trace_page *const *)b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Every kept page once, sorted. Returns how many; *out is to be freed. */
static size_t collect(const struct tracewindow *w, struct trace_page ***out)
{
	bool *taken = calloc(w->pool_pages, sizeof(*taken));
	size_t count = 0;

	*out = calloc(w->pool_pages, sizeof(**out));
	for (unsigned int i = 0; taken && *out && i < w->count; i++) {
		for (unsigned int j = 0; j < w->kept[i].pages; j++) {
			uint32_t page = w->kept[i].page[j];

			if (!taken[page])
				(*out)[count++] = &w->page[page];
			taken[page] = true;
		}
	}
	free(taken);
	if (*out)
		qsort(*out, count, sizeof(**out), by_cpu_and_seq);
	return count;
}

static const unsigned char *bytes_of(const struct tracer *t, const struct trace_page *p)
{
	return tracewindow_bytes(&t->window, (uint32_t)(p - t->window.page));
}

static bool follows(const struct trace_page *a, const struct trace_page *b)
{
	return a->cpu == b->cpu && a->seq + 1 == b->seq;
}

static void emit_symbols(const struct tracer *t, struct emit *out,
			 struct trace_page *const *page, size_t count)
{
	unsigned int word = t->window.layout.commit_size;
	int offsets = traceevents_have(&t->events, "preemptirq");
	struct tracesymbols symbols;
	struct snapshot all;
	size_t size;
	char *text;

	if (t->kallsyms_fd < 0 || snapshot_read(t->kallsyms_fd, &all))
		return;
	if (tracesymbols_init(&symbols, all.text) == 0) {
		for (size_t i = 0; i < count; i++)
			tracesymbols_mark(&symbols, bytes_of(t, page[i]),
					  t->window.layout.page_size, word, offsets);
		size = tracesymbols_write(&symbols, NULL);
		text = malloc(size + 1);
		if (text) {
			tracesymbols_write(&symbols, text);
			emit_trace_file(out, "kallsyms", text, size);
		}
		free(text);
		tracesymbols_free(&symbols);
	}
	snapshot_free(&all);
}

static void emit_run(const struct tracer *t, struct emit *out,
		     struct trace_page *const *page, size_t count, unsigned char *room)
{
	size_t size = t->window.layout.page_size;

	for (size_t i = 0; i < count; i++)
		memcpy(room + i * size, bytes_of(t, page[i]), size);
	emit_begin(out, "trace_pages");
	emit_int(out, "cpu", t->cpu[page[0]->cpu]);
	emit_int(out, "seq", (int64_t)page[0]->seq);
	emit_base64(out, "base64", room, count * size);
	emit_end_later(out);
}

static void emit_pages(const struct tracer *t, struct emit *out)
{
	unsigned char *room = malloc(PAGES_PER_LINE * t->window.layout.page_size);
	struct trace_page **page = NULL;
	size_t count = collect(&t->window, &page);

	if (page)
		emit_symbols(t, out, page, count);
	for (size_t i = 0, n; room && page && i < count; i += n) {
		for (n = 1; n < PAGES_PER_LINE && i + n < count; n++)
			if (!follows(page[i + n - 1], page[i + n]))
				break;
		emit_run(t, out, page + i, n, room);
	}
	free(page);
	free(room);
}

void tracereport_emit_trace(const struct tracer *t, struct emit *out)
{
	if (t->refusal.cause)
		return;
	emit_trace_file(out, "events/header_page", t->header_page,
			strlen(t->header_page));
	emit_file(t, out, "events/header_event");
	emit_file(t, out, "saved_cmdlines");
	emit_file(t, out, "events/ftrace/kernel_stack/format");
	emit_file(t, out, "events/ftrace/print/format");
	emit_formats(t, out);
	emit_pages(t, out);
}

static void emit_events(const struct tracer *t, struct emit *out, const char *key,
			bool on)
{
	char name[128];

	emit_open(out, key, '[');
	for (unsigned int i = 0; !t->refusal.cause && i < traceevents_count(); i++) {
		if (on ? t->events.err[i] != 0 : t->events.err[i] >= 0)
			continue;
		snprintf(name, sizeof(name), "%s:%s", trace_events[i].system,
			 trace_events[i].name);
		emit_text(out, NULL, name);
	}
	if (!t->refusal.cause && (t->events.stack_err == 0) == on)
		emit_text(out, NULL, "ftrace:kernel_stack");
	emit_close(out, ']');
}

static void emit_cpu(const struct tracer *t, struct emit *out, unsigned int i)
{
	const struct trace_ring *r = &t->window.ring[i];

	emit_open(out, NULL, '{');
	emit_int(out, "cpu", t->cpu[i]);
	emit_int(out, "events", (int64_t)r->events);
	emit_int(out, "pages", (int64_t)r->pages);
	emit_int(out, "gaps", (int64_t)r->missed);
	emit_int(out, "damaged", (int64_t)r->damaged);
	emit_int(out, "overrun", t->overrun[i]);
	emit_int(out, "dropped", t->dropped[i]);
	emit_close(out, '}');
}

static void emit_kept(const struct trace_kept *k, struct emit *out)
{
	emit_open(out, NULL, '{');
	wakeupline_emit(out, k->cpu, &k->wakeup);
	emit_int(out, "from_ns", k->from_ns > 0 ? k->from_ns : 0);
	emit_int(out, "to_ns", k->to_ns);
	emit_int(out, "pages", k->pages);
	emit_bool(out, "truncated", k->truncated || k->given_up);
	emit_bool(out, "overwritten", k->overwritten);
	emit_close(out, '}');
}

static int64_t candidates_lost(const struct tracer *t)
{
	int64_t lost = 0;

	for (unsigned int i = 0; i < t->samplers; i++)
		lost += atomic_load_explicit(&t->candidates[i].lost,
					     memory_order_relaxed);
	return lost;
}

void tracereport_emit_summary(const struct tracer *t,
			      const struct counterdeltas *deltas, struct emit *out)
{
	emit_open(out, "tracing", '{');
	emit_bool(out, "enabled", !t->refusal.cause);
	emit_text(out, "cause", t->refusal.cause ? t->refusal.cause : "");
	emit_text(out, "reason", t->refusal.what);
	emit_remedy(out, t->refusal.cause ? t->refusal.remedy : "");
	emit_text(out, "clock", "mono");
	emit_int(out, "page_bytes", t->window.layout.page_size);
	emit_int(out, "buffer_kb", t->buffer_kb);
	emit_int(out, "longest_read_gap_ns", t->rounds.longest_gap_ns);
	emit_int(out, "candidates_lost", candidates_lost(t));
	emit_events(t, out, "events", true);
	emit_events(t, out, "missing_events", false);
	emit_open(out, "cpus", '[');
	for (unsigned int i = 0; !t->refusal.cause && i < t->cpus; i++)
		emit_cpu(t, out, i);
	emit_close(out, ']');
	emit_open(out, "kept", '[');
	for (unsigned int i = 0; i < t->window.count; i++)
		emit_kept(&t->window.kept[i], out);
	emit_close(out, ']');
	counterdeltas_emit(deltas, out);
	emit_close(out, '}');
}
