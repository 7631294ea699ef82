/* SPDX-License-Identifier: MIT */
#include "measure/timerlat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "measure/reports.h"
#include "thread/rawcall.h"

#define READ_EVERY_NS INT64_C(50000000)
#define LATE_NS       INT64_C(200000000) /* that long the last ones may take */
#define MARK          "timer_latency"
#define CONTEXT       "context"

/* --- reports -------------------------------------------------------------------------- */

static const char *behind_spaces(const char *at)
{
	while (*at == ' ')
		at++;
	return at;
}

static bool parse_line(const char *line, const char *end, struct timerlat_report *out)
{
	const char *number = strstr(line, ": #"), *at;
	char *rest;

	if (!number || number > end)
		return false;
	out->at_ns = reports_time_ns(line, number);
	out->number = strtoull(number + 3, &rest, 10);
	at = behind_spaces(rest);
	if (out->at_ns < 0 || strncmp(at, CONTEXT, strlen(CONTEXT)) != 0)
		return false;
	at = behind_spaces(at + strlen(CONTEXT));
	out->is_thread = strncmp(at, "thread ", 7) == 0;
	if (!out->is_thread && strncmp(at, "irq ", 4) != 0)
		return false;
	at = strchr(at, ' ') + 1;
	if (strncmp(at, MARK, strlen(MARK)) != 0)
		return false;
	out->latency_ns = strtoll(at + strlen(MARK), &rest, 10);
	return rest < end && out->latency_ns >= 0;
}

bool timerlat_parse(const char **text, struct timerlat_report *out)
{
	const char *line = *text, *end;

	for (; (end = strchr(line, '\n')); line = *text) {
		*text = end + 1;
		if (parse_line(line, end, out))
			return true;
	}
	return false;
}

/* --- the loop ------------------------------------------------------------------------- */

struct timerlat *timerlat_alloc(unsigned int n)
{
	struct timerlat *t = mmap(NULL, n * sizeof(*t), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (t == MAP_FAILED)
		return NULL;
	for (unsigned int i = 0; i < n; i++) {
		hist_init(&t[i].before);
		hist_init(&t[i].thread);
	}
	return t;
}

static void take_thread(struct sampler *s, const struct timerlat_report *r)
{
	struct timerlat *t = s->timerlat;
	const int64_t due_ns = r->at_ns - r->latency_ns;
	/* a line has microseconds; the kernel's timers are on a grid */
	const struct wakeup w = {
		.seq = t->last + (uint64_t)((due_ns - t->base_ns) / s->interval_ns),
		.expiry_ns = due_ns,
		.wake_ns = r->at_ns,
	};

	if (due_ns <= s->start_ns || w.seq <= t->last || w.seq > t->periods)
		return;
	t->last = w.seq;
	t->base_ns = due_ns - s->interval_ns / 2;
	if (r->latency_ns > s->worst.bar_ns)
		worst_offer(&s->worst, w);
	take_figures(s, r->latency_ns);
	hist_add(&t->before, t->irq.latency_ns);
	hist_add(&t->thread, r->latency_ns - t->irq.latency_ns);
	take_missed(s, due_ns + s->interval_ns, r->at_ns);
}

static void take_reports(struct sampler *s, const char **text)
{
	struct timerlat *t = s->timerlat;
	struct timerlat_report one;

	while (timerlat_parse(text, &one)) {
		if (!one.is_thread)
			t->irq = one;
		else if (one.number == t->irq.number &&
			 one.latency_ns >= t->irq.latency_ns)
			take_thread(s, &one);
	}
}

static void read_reports(struct sampler *s)
{
	struct timerlat *t = s->timerlat;

	for (;;) {
		const char *rest = t->text;
		size_t room = sizeof(t->text) - 1 - t->kept;
		long n = rawcall4(SYS_read, s->reports_fd, (long)(t->text + t->kept),
				  (const void *)room, NULL);

		if (n <= 0)
			return;
		t->text[t->kept + (size_t)n] = '\0';
		take_reports(s, &rest);
		t->kept = strlen(rest);
		if (t->kept == sizeof(t->text) - 1)
			t->kept = 0; /* no line of this tracer */
		memmove(t->text, rest, t->kept);
	}
}

void timerlat_until_end(struct sampler *s)
{
	struct timerlat *t = s->timerlat;
	int64_t at_ns = s->start_ns;
	int err = 0;

	t->base_ns = s->start_ns - s->interval_ns; /* the first one is of period 1 */
	t->periods = (uint64_t)((s->end_ns - s->start_ns) / s->interval_ns);
	while (t->last < t->periods && at_ns < s->end_ns + LATE_NS &&
	       (!err || err == EINTR)) {
		struct timespec until = ns_timespec(at_ns += READ_EVERY_NS);

		err = clock_sleep_until(&until);
		read_reports(s);
		if (relaxed(*s->stop)) {
			t->periods = t->last;
			s->end_ns = s->start_ns + (int64_t)t->last * s->interval_ns;
		}
	}
	/* whatever was not reported: the thread overran, or the kernel lost the line */
	relax(s->progress.missed_periods, t->periods - relaxed(s->progress.samples));
}

/* --- the tracer ----------------------------------------------------------------------- */

static int set_up(struct run *run)
{
	char cpus[CPULIST_TEXT_MAX];
	int err;

	run->timerlat = timerlat_alloc(run->count);
	if (!run->timerlat)
		return -errno;
	cpulist_format(&run->options->cpus, cpus, sizeof(cpus));
	err = reports_set(run, "timerlat_period", run->options->interval_ns / 1000,
			  NULL);
	if (!err)
		err = reports_set(run, "osnoise_cpus", 0, cpus);
	if (!err)
		err = reports_set(run, "osnoise_stop", 0, NULL);
	return err ? err : reports_set(run, "osnoise_stop_total", 0, NULL);
}

enum exit_status timerlat_open(struct run *run, struct emit *out)
{
	static const struct tracer_kind timerlat = {
		.name = "timerlat",
		.beside = "timerlat\nosnoise\n",
		.file = "osnoise/timerlat_period_us",
		.lacking = "measures each CPU",
		.remedy = "boot Linux 5.14 or newer with CONFIG_TIMERLAT_TRACER, or "
			  "choose another --event",
		.set_up = set_up,
	};

	return run->options->event.timerlat ? reports_begin(run, out, &timerlat)
					    : EXIT_DONE;
}
