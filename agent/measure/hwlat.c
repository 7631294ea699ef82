/* SPDX-License-Identifier: MIT */
#include "measure/hwlat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/tracefs.h"
#include "thread/rawcall.h"

#define REPORT     "inner/outer(us):"
#define TEXT_BYTES 4096
#define NS_PER_US  INT64_C(1000)

/* --- reports -------------------------------------------------------------------------- */

/* Seconds and their six digits, which end at `end`. -1: there are none. */
static int64_t time_before(const char *from, const char *end)
{
	const char *at = end;
	char *point;
	int64_t s;

	while (at > from && strchr("0123456789.", at[-1]))
		at--;
	s = strtoll(at, &point, 10);
	if (point == at || *point != '.' || end - point != 7)
		return -1;
	return s * NS_PER_S + strtoll(point + 1, NULL, 10) * NS_PER_US;
}

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
		out->at_ns = time_before(line, number);
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

static int set(struct run *run, const char *name, long long value, const char *word)
{
	const struct knob_place place = { "", name, 0 };
	char number[24];

	snprintf(number, sizeof(number), "%lld", value);
	return journal_set_knob(&run->journal, JOURNAL_DIR, &place,
				word ? word : number);
}

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
		err = set(run, "hwlat_width", width_us, NULL);
	if (!err)
		err = set(run, "hwlat_window", window_us, NULL);
	if (!err && !narrow)
		err = set(run, "hwlat_width", width_us, NULL);
	return err;
}

/* Which CPUs, as a hexadecimal mask in words of 32 bits. */
static void format_mask(const struct cpulist *cpus, char *text, size_t size)
{
	size_t used = 0;
	int word = 0;

	for (int cpu = cpulist_next(cpus, 0); cpu >= 0;
	     cpu = cpulist_next(cpus, (unsigned int)cpu + 1))
		word = cpu / 32;
	for (; word >= 0 && used < size; word--) {
		uint32_t bits = 0;

		for (unsigned int i = 0; i < 32; i++)
			if (cpulist_has(cpus, (unsigned int)word * 32 + i))
				bits |= UINT32_C(1) << i;
		used += (size_t)snprintf(text + used, size - used, "%08x%s", bits,
					 word ? "," : "");
	}
}

static int make_instance(struct run *run, char path[TRACEFS_PATH])
{
	const struct knob_place place = { "", "trace_instance", (int)getpid() };
	int err = journal_set_knob(&run->journal, JOURNAL_DIR, &place, "made");
	char mask[CPULIST_TEXT_MAX];

	if (!err)
		err = tracefs_instance("", (int)getpid(), path);
	if (!err)
		err = tracefs_write(path, "trace_clock", "mono");
	format_mask(&run->options->cpus, mask, sizeof(mask));
	return err ? err : tracefs_write(path, "tracing_cpumask", mask);
}

static int open_reports(struct run *run, const char *instance)
{
	const struct cpulist *cpus = &run->options->cpus;
	int *fd = run->reports_fd;

	for (int cpu = cpulist_next(cpus, 0); cpu >= 0;
	     cpu = cpulist_next(cpus, (unsigned int)cpu + 1)) {
		char path[2 * TRACEFS_PATH];

		snprintf(path, sizeof(path), "%s/per_cpu/cpu%d/trace_pipe", instance,
			 cpu);
		*fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (*fd++ < 0)
			return -errno;
	}
	return 0;
}

static int start_tracer(struct run *run, const char **what)
{
	char instance[TRACEFS_PATH];
	int err;

	*what = "set width, window, mode and threshold of";
	err = set_times(run);
	if (!err)
		err = set(run, "hwlat_mode", 0, "per-cpu");
	if (!err)
		err = set(run, "tracing_thresh", run->options->event.hwlat.threshold_us,
			  NULL);
	if (err)
		return err;
	*what = "make an instance for";
	err = make_instance(run, instance);
	if (err)
		return err;
	*what = "start";
	err = tracefs_write(instance, "current_tracer", "hwlat");
	if (err)
		return err;
	*what = "read the reports of"; /* while they are, no tracer can be set */
	return open_reports(run, instance);
}

static enum exit_status refuse_tracefs(struct run *run, struct emit *out, int err)
{
	struct tracefs_refusal refusal;

	tracefs_explain("", err, &refusal);
	snprintf(run->text, sizeof(run->text), "event hwlat: %s", refusal.what);
	return emit_error(out, err == -EPERM || err == -EACCES ? "capability" : "event",
			  run->text, refusal.remedy);
}

enum exit_status hwlat_open(struct run *run, struct emit *out)
{
	char tracefs[TRACEFS_PATH], mode[2 * TRACEFS_PATH];
	const char *what;
	int err;

	if (!run->options->event.hwlat.asked)
		return EXIT_DONE;
	err = tracefs_find("", tracefs);
	if (err)
		return refuse_tracefs(run, out, err);
	snprintf(mode, sizeof(mode), "%s/hwlat_detector/mode", tracefs);
	if (access(mode, F_OK) < 0)
		return emit_error(
			out, "event",
			"event hwlat: this kernel has no tracer hwlat that "
			"watches each CPU",
			"boot Linux 5.14 or newer with CONFIG_HWLAT_TRACER, or "
			"choose another --event");
	err = start_tracer(run, &what);
	if (!err)
		return EXIT_DONE;
	snprintf(run->text, sizeof(run->text),
		 "event hwlat: cannot %s the kernel's tracer hwlat: %s", what,
		 err == JOURNAL_HELD ? "another running rtscope has changed it"
				     : strerror(-err));
	return emit_error(
		out, err == -EPERM || err == -EACCES ? "capability" : "event",
		run->text,
		err == -EBUSY || err == JOURNAL_HELD
			? "wait until nobody else uses this tracer, or choose another "
			  "--event"
			: "run through sudo, or choose another --event");
}

void hwlat_close(struct run *run)
{
	for (unsigned int i = 0; run->options->event.hwlat.asked && i < run->count; i++)
		if (run->reports_fd[i] > 0)
			close(run->reports_fd[i]);
}
