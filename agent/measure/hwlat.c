/* SPDX-License-Identifier: MIT */
#include "measure/hwlat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "measure/reports.h"
#include "thread/rawcall.h"

#define REPORT     "inner/outer(us):"
#define TEXT_BYTES 4096
#define NS_PER_US  INT64_C(1000)

/* --- reports -------------------------------------------------------------------------- */

bool hwlat_parse(const char **text, struct hwlat_report *out)
{
	for (;;) {
		const char *line = *text, *end = strchr(line, '\n');
		const char *report = strstr(line, REPORT), *number;
		int64_t inner, outer;
		char *slash;

		if (!end || !report)
			return false;
		*text = end + 1;
		number = strstr(line, ": #");
		if (report > end || !number || number > report)
			continue;
		inner = strtoll(report + strlen(REPORT), &slash, 10);
		if (*slash != '/')
			continue;
		outer = strtoll(slash + 1, NULL, 10);
		out->at_ns = reports_time_ns(line, number);
		out->gap_ns = (inner > outer ? inner : outer) * NS_PER_US;
		if (out->at_ns >= 0 && out->gap_ns >= 0)
			return true;
	}
}

/* The longest gap that was reported since the last call, of this run; 0: none. */
static struct hwlat_report read_reports(const struct sampler *s)
{
	struct hwlat_report longest = { 0, 0 }, one;
	char text[TEXT_BYTES + 1];

	for (;;) {
		const char *rest = text;
		long n = rawcall4(SYS_read, s->reports_fd, (long)text,
				  (const void *)TEXT_BYTES, NULL);

		if (n <= 0)
			return longest;
		text[n] = '\0';
		while (hwlat_parse(&rest, &one))
			if (one.at_ns >= s->start_ns && one.gap_ns > longest.gap_ns)
				longest = one;
	}
}

static void take_report(struct sampler *s, const struct hwlat_report *r, int64_t end_ns)
{
	const struct wakeup w = {
		.seq = (uint64_t)((end_ns - s->start_ns) / s->interval_ns),
		.expiry_ns = r->at_ns - r->gap_ns,
		.wake_ns = r->at_ns,
	};

	if (r->gap_ns > s->worst.bar_ns)
		worst_offer(&s->worst, w);
	take_figures(s, r->gap_ns);
}

void hwlat_until_end(struct sampler *s)
{
	int64_t end_ns = s->start_ns + s->interval_ns;

	while (end_ns <= s->end_ns) {
		const struct timespec end = ns_timespec(end_ns);
		struct hwlat_report longest;
		int err = clock_sleep_until(&end);

		if (err && (err != EINTR || relaxed(*s->stop)))
			break;
		if (err)
			continue;
		longest = read_reports(s);
		if (longest.gap_ns)
			take_report(s, &longest, end_ns);
		else
			s->silent++;
		end_ns += s->interval_ns;
		if (relaxed(*s->stop))
			break;
	}
	s->end_ns = end_ns - s->interval_ns;
}

/* --- the tracer ----------------------------------------------------------------------- */

/* The kernel takes no width above the window, before or after. */
static int set_times(struct run *run)
{
	const struct knob_place place = { "", "hwlat_window", 0 };
	int64_t width_us = run->options->event.hwlat.width_us;
	int64_t window_us = run->options->interval_ns / NS_PER_US;
	char present[KNOB_VALUE_MAX];
	int err = knob_read(&place, present);
	bool narrow = !err && width_us < atoll(present);

	if (!err && narrow)
		err = reports_set(run, "hwlat_width", width_us, NULL);
	if (!err)
		err = reports_set(run, "hwlat_window", window_us, NULL);
	if (!err && !narrow)
		err = reports_set(run, "hwlat_width", width_us, NULL);
	return err;
}

static int set_up(struct run *run)
{
	int err = set_times(run);

	if (!err)
		err = reports_set(run, "hwlat_mode", 0, "per-cpu");
	if (err)
		return err;
	return reports_set(run, "tracing_thresh",
			   run->options->event.hwlat.threshold_us, NULL);
}

enum exit_status hwlat_open(struct run *run, struct emit *out)
{
	static const struct tracer_kind hwlat = {
		.name = "hwlat",
		.beside = "hwlat\nosnoise\ntimerlat\nirqsoff\npreemptoff\n"
			  "preemptirqsoff\nwakeup\nwakeup_rt\nwakeup_dl\n"
			  "function_graph\n", /* of one threshold */
		.file = "hwlat_detector/mode",
		.lacking = "watches each CPU",
		.remedy = "boot Linux 5.14 or newer with CONFIG_HWLAT_TRACER, or "
			  "choose another --event",
		.set_up = set_up,
	};

	return run->options->event.hwlat.asked ? reports_begin(run, out, &hwlat)
					       : EXIT_DONE;
}
