/* SPDX-License-Identifier: MIT */
#include "trace/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/slurp.h"
#include "machine/pidnamespace.h"
#include "options.h"

#define ROUND_NS (50 * INT64_C(1000000))

/* Enough for the switch before the expiry, which tells who ran: see before_ns. */
#define BEFORE_MIN_NS INT64_C(1000000)
#define BEFORE_MAX_NS (20 * INT64_C(1000000))
#define AFTER_NS      INT64_C(500000)

/* A tenth of a second of the busiest machine seen, which wrote 30 MB/s on a CPU. */
#define BUFFER_MAX_KB  4096
#define BUFFER_MIN_KB  256
#define POOL_PER_CPU   2048 /* pages; half of them are the window of the CPU */
#define POOL_MIN_PAGES 512
#define MEMORY_SHARE                                                                   \
	16 /* of the machine's memory, for the kernel's rings and for ours */
#define MEMORY_MAX (UINT64_C(256) << 20)

static uint64_t memory_budget(void)
{
	uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			 (uint64_t)sysconf(_SC_PAGESIZE) / MEMORY_SHARE;

	return bytes < MEMORY_MAX ? bytes : MEMORY_MAX;
}

static int refuse(struct tracer *t, int err, const char *what)
{
	tracefs_explain("", err, &t->refusal);
	if (strcmp(t->refusal.cause, "other") == 0)
		snprintf(t->refusal.what, sizeof(t->refusal.what), "cannot %s: %s",
			 what, strerror(-err));
	return err;
}

static int make_instance(struct tracer *t, struct journal *journal)
{
	const struct knob_place place = { "", "trace_instance", (int)getpid() };
	int err = tracefs_find("", t->tracefs);

	if (err)
		return refuse(t, err, "find tracefs");
	err = journal_set_knob(journal, JOURNAL_DIR, &place, "made");
	if (err)
		return refuse(t, err, "make a tracing instance");
	return tracefs_instance("", (int)getpid(), t->instance);
}

static int set_clock(struct tracer *t)
{
	char path[2 * TRACEFS_PATH], text[256];
	int err = tracefs_write(t->instance, "trace_clock", "mono");

	snprintf(path, sizeof(path), "%s/trace_clock", t->instance);
	if (!err && (slurp(path, text, sizeof(text)) < 0 || !strstr(text, "[mono]")))
		err = -EIO;
	return err ? refuse(t, err, "set the trace clock to CLOCK_MONOTONIC") : 0;
}

static int read_layout(struct tracer *t, struct tracepage_layout *out)
{
	char path[2 * TRACEFS_PATH];
	long n;

	snprintf(path, sizeof(path), "%s/events/header_page", t->tracefs);
	n = slurp(path, t->header_page, sizeof(t->header_page));
	if (n < 0)
		return refuse(t, (int)n, "read events/header_page");
	if (tracepage_layout(t->header_page, out))
		return refuse(t, -EINVAL, "understand events/header_page");
	return 0;
}

static int find_cpus(struct tracer *t)
{
	char text[CPULIST_TEXT_MAX];
	struct cpulist online = { 0 };

	if (slurp("/sys/devices/system/cpu/online", text, sizeof(text)) < 0)
		return refuse(t, -ENOENT, "read which CPUs are online");
	text[strcspn(text, "\n")] = '\0';
	if (cpulist_parse(text, &online))
		return refuse(t, -EINVAL, "read which CPUs are online");
	for (int cpu = cpulist_next(&online, 0); cpu >= 0;
	     cpu = cpulist_next(&online, (unsigned int)cpu + 1))
		t->cpu[t->cpus++] = cpu;
	return 0;
}

/* What an instance has from the user's own tracing, and what not although the pages are
 * described by it: see events/header_page. */
static int set_form(struct tracer *t, const struct tracepage_layout *layout)
{
	char text[24];
	int err = tracefs_write(t->instance, "trace_options", "overwrite");

	if (!err) {
		snprintf(text, sizeof(text), "%u", layout->page_size / 1024);
		err = tracefs_write(t->instance, "buffer_subbuf_size_kb", text);
		/* before Linux 6.8 it is always a page */
		if (err == -ENOENT)
			err = 0;
	}
	return err ? refuse(t, err, "set the form of the trace buffer") : 0;
}

static int open_rings(struct tracer *t)
{
	for (unsigned int i = 0; i < t->cpus; i++) {
		char path[2 * TRACEFS_PATH];

		snprintf(path, sizeof(path), "%s/per_cpu/cpu%d/trace_pipe_raw",
			 t->instance, t->cpu[i]);
		t->raw_fd[i] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (t->raw_fd[i] < 0)
			return refuse(t, -errno, "open trace_pipe_raw");
	}
	return 0;
}

static void close_rings(struct tracer *t)
{
	for (unsigned int i = 0; i < t->cpus; i++) {
		if (t->raw_fd[i] >= 0)
			close(t->raw_fd[i]);
		t->raw_fd[i] = -1;
	}
}

static int set_buffers(struct tracer *t, uint64_t budget)
{
	uint64_t kb = budget / 1024 / t->cpus;
	char text[24];
	int err;

	kb = kb < BUFFER_MAX_KB ? kb : BUFFER_MAX_KB;
	t->buffer_kb = (unsigned int)(kb > BUFFER_MIN_KB ? kb : BUFFER_MIN_KB);
	snprintf(text, sizeof(text), "%u", t->buffer_kb);
	err = tracefs_write(t->instance, "buffer_size_kb", text);
	return err ? refuse(t, err, "set the size of the trace buffer") : 0;
}

static int make_window(struct tracer *t, uint64_t budget, unsigned int worst)
{
	struct tracepage_layout layout;
	uint64_t pages;
	int err = read_layout(t, &layout);

	err = err ? err : set_form(t, &layout);
	if (err)
		return err;
	pages = budget / layout.page_size;
	if (pages > POOL_PER_CPU * (uint64_t)t->cpus)
		pages = POOL_PER_CPU * (uint64_t)t->cpus;
	if (pages < POOL_MIN_PAGES)
		pages = POOL_MIN_PAGES;
	err = tracewindow_init(&t->window, &layout, t->cpus, worst, (uint32_t)pages);
	if (err)
		return refuse(t, err, "allocate memory for trace pages");
	return 0;
}

/* Events of another thread that has this one's number would be taken for its own. */
static int refuse_namespace(struct tracer *t)
{
	if (pidnamespace_is_first())
		return 0;
	t->refusal.cause = "namespace";
	t->refusal.remedy = PIDNAMESPACE_REMEDY;
	snprintf(t->refusal.what, sizeof(t->refusal.what), PIDNAMESPACE_REASON);
	return -EXDEV;
}

static int set_up(struct tracer *t, struct journal *journal, unsigned int worst)
{
	uint64_t budget = memory_budget();
	int err = refuse_namespace(t);

	err = err ? err : make_instance(t, journal);
	err = err ? err : tracefs_write(t->instance, "tracing_on", "0");
	err = err ? err : set_clock(t);
	err = err ? err : find_cpus(t);
	err = err ? err : make_window(t, budget, worst);
	err = err ? err : set_buffers(t, budget);
	err = err ? err : open_rings(t);
	if (!err && traceevents_enable(t->instance, t->use, &t->events) == 0)
		err = refuse(t, -ENOENT, "find any event that explains a wake-up");
	return err;
}

void tracer_open(struct tracer *t, struct journal *journal,
		 struct candidates *candidates, unsigned int samplers,
		 const struct options *options)
{
	int64_t before_ns = 2 * options->interval_ns;
	int err;

	*t = (struct tracer){
		.opened = true,
		.candidates = candidates,
		.samplers = samplers,
		.use = options->command == COMMAND_CYCLES ? TRACE_CYCLES
							  : TRACE_SAMPLERS,
		.kallsyms_fd = -1,
	};
	memset(t->raw_fd, -1, sizeof(t->raw_fd));
	/* Our thread's own switch at the end of the period before is the last that
	 * is sure to have been: it tells who ran when the timer expired. */
	if (before_ns < BEFORE_MIN_NS)
		before_ns = BEFORE_MIN_NS;
	t->before_ns = before_ns < BEFORE_MAX_NS ? before_ns : BEFORE_MAX_NS;
	t->after_ns = AFTER_NS;

	err = set_up(t, journal, options->worst);
	if (err) {
		if (!t->refusal.cause)
			refuse(t, err, "set up tracing");
		close_rings(t);
		tracewindow_free(&t->window); /* before it is locked */
		return;
	}
	/* the rights that show addresses count when it is opened */
	t->kallsyms_fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
}

/* The number of a CPU's window; TRACEWINDOW_NONE: it has none. */
static unsigned int index_of(const struct tracer *t, int cpu)
{
	for (unsigned int i = 0; i < t->cpus; i++)
		if (t->cpu[i] == cpu)
			return i;
	return TRACEWINDOW_NONE;
}

static void take_candidates(struct tracer *t)
{
	for (unsigned int i = 0; i < t->samplers; i++) {
		struct trace_kept k = { .cpu = t->candidates[i].cpu };

		k.own = index_of(t, k.cpu);
		while (candidates_pop(&t->candidates[i], &k.wakeup)) {
			k.from_ns = k.wakeup.expiry_ns - t->before_ns;
			k.to_ns = k.wakeup.wake_ns + t->after_ns;
			if (k.wakeup.wake_ns >= k.wakeup.expiry_ns)
				tracewindow_want(&t->window, &k);
		}
	}
}

/* Not for ever, should pages come as fast as they are read: others wait, too. Returns
 * false if there may be more. */
static bool drain(struct tracer *t, unsigned int i)
{
	size_t size = t->window.layout.page_size;

	for (unsigned int n = 0; n < t->window.ring_pages; n++) {
		unsigned char *place = tracewindow_place(&t->window, i);

		if (read(t->raw_fd[i], place, size) != (ssize_t)size)
			return true;
		if (t->page_read)
			t->page_read(t->page_context, i, place);
		tracewindow_add(&t->window, i);
	}
	return false;
}

void tracer_round(struct tracer *t)
{
	take_candidates(t);
	for (unsigned int i = 0; i < t->cpus; i++)
		drain(t, i);
}

static void take_round(void *tracer)
{
	tracer_round(tracer);
}

static int begin(struct tracer *t, const int *tid, unsigned int tids)
{
	int err;

	traceevents_filter(t->instance, t->use, tid, tids, &t->events);
	err = tracefs_write(t->instance, "tracing_on", "1");
	t->recording = !err;
	return err;
}

/* What counts as not traced must not pay for it. */
static void give_up(struct tracer *t, int err)
{
	tracefs_write(t->instance, "tracing_on", "0");
	tracefs_write(t->instance, "events/enable", "0");
	t->recording = false;
	refuse(t, err, "begin to record");
}

void tracer_record(struct tracer *t, const int *tid, unsigned int tids)
{
	const int err = begin(t, tid, tids);

	if (err)
		give_up(t, err);
}

void tracer_start(struct tracer *t, const int *tid)
{
	int err = begin(t, tid, t->samplers);

	t->rounds = (struct rounds){ .name = "rtscope/trace",
				     .period_ns = ROUND_NS,
				     .round = take_round,
				     .context = t };
	if (!err)
		err = rounds_start(&t->rounds);
	if (err)
		give_up(t, err);
}

/* A line "NAME: COUNT" of per_cpu/cpuN/stats; -1 where the kernel does not tell. */
static int64_t stat_of(const char *stats, const char *name)
{
	size_t size = strlen(name);

	for (const char *line = stats; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, size) == 0 && line[size] == ':')
			return strtoll(line + size + 1, NULL, 10);
	}
	return -1;
}

static void read_stats(struct tracer *t, unsigned int i)
{
	char path[2 * TRACEFS_PATH], text[1024];

	snprintf(path, sizeof(path), "%s/per_cpu/cpu%d/stats", t->instance, t->cpu[i]);
	if (slurp(path, text, sizeof(text)) < 0)
		text[0] = '\0';
	t->overrun[i] = stat_of(text, "overrun");
	t->dropped[i] = stat_of(text, "dropped events");
}

void tracer_stop(struct tracer *t)
{
	const struct timespec rest = { .tv_nsec = AFTER_NS };

	if (t->recording) {
		nanosleep(&rest, NULL);
		tracefs_write(t->instance, "tracing_on", "0");
		rounds_stop(&t->rounds);
		for (unsigned int i = 0; i < t->cpus; i++) {
			/* nothing comes any more: this ends */
			while (!drain(t, i))
				;
			read_stats(t, i);
		}
		t->recording = false;
	}
	close_rings(t);
}

void tracer_free(struct tracer *t)
{
	close_rings(t);
	if (t->kallsyms_fd >= 0)
		close(t->kallsyms_fd);
	tracewindow_free(&t->window);
	t->kallsyms_fd = -1;
}
