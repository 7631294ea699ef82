/* SPDX-License-Identifier: MIT */
#include "measure/reports.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "files/slurp.h"
#include "machine/tracefs.h"

#define NS_PER_US INT64_C(1000)

/* Seconds and their six digits, which end at `end`. -1: there are none. */
int64_t reports_time_ns(const char *from, const char *end)
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

int reports_set(struct run *run, const char *name, long long value, const char *word)
{
	const struct knob_place place = { "", name, 0 };
	struct tracer_setting *set = &run->setting[run->settings++];

	set->knob = name;
	if (word)
		snprintf(set->value, sizeof(set->value), "%s", word);
	else
		snprintf(set->value, sizeof(set->value), "%lld", value);
	return journal_set_knob(&run->journal, JOURNAL_DIR, &place, set->value);
}

bool reports_in_use(const char *tracefs, const char *tracers)
{
	char path[2 * TRACEFS_PATH], tracer[32];
	glob_t found = { 0 };
	bool in_use = false;

	snprintf(path, sizeof(path), "%s/current_tracer", tracefs);
	glob(path, GLOB_NOCHECK, NULL, &found);
	snprintf(path, sizeof(path), "%s/instances/*/current_tracer", tracefs);
	glob(path, GLOB_APPEND, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && !in_use; i++) {
		/* its name and the end of the line */
		if (slurp(found.gl_pathv[i], tracer, sizeof(tracer)) > 0)
			in_use = strstr(tracers, tracer) != NULL;
	}
	globfree(&found);
	return in_use;
}

bool reports_changed(struct run *run)
{
	char now[KNOB_VALUE_MAX];

	for (unsigned int i = 0; i < run->settings && !run->changed; i++) {
		const struct tracer_setting *one = &run->setting[i];
		const struct knob_place place = { "", one->knob, 0 };

		if (knob_read(&place, now) == 0 && strcmp(now, one->value) != 0)
			run->changed = one;
	}
	return run->changed != NULL;
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

static int start(struct run *run, const struct tracer_kind *kind, const char *tracefs,
		 const char **what)
{
	char instance[TRACEFS_PATH];
	int err;

	*what = "set";
	if (reports_in_use(tracefs, kind->beside))
		return -EBUSY;
	err = kind->set_up(run);
	if (err)
		return err;
	*what = "make an instance for";
	err = make_instance(run, instance);
	if (err)
		return err;
	*what = "start";
	err = tracefs_write(instance, "current_tracer", kind->name);
	if (err)
		return err;
	*what = "read the reports of"; /* while they are, no tracer can be set */
	return open_reports(run, instance);
}

/* Why not, in run->text; returns what to do. */
static const char *__attribute__((noinline)) explain(struct run *run, const char *what,
						     int err)
{
	const char *name = event_name(&run->options->event);
	bool held = err == JOURNAL_HELD;

	snprintf(run->text, sizeof(run->text),
		 "event %s: cannot %s the kernel's tracer %s: %s", name, what, name,
		 held ? "another program has changed it" : strerror(-err));
	return err == -EBUSY || held
		       ? "wait until nobody else uses this tracer, or choose another "
			 "--event"
		       : "run through sudo, or choose another --event";
}

enum exit_status reports_begin(struct run *run, struct emit *out,
			       const struct tracer_kind *kind)
{
	char tracefs[TRACEFS_PATH], file[2 * TRACEFS_PATH];
	struct tracefs_refusal refusal = { 0 };
	const char *what, *remedy;
	int err = tracefs_find("", tracefs);

	if (err) {
		tracefs_explain("", err, &refusal);
		snprintf(run->text, sizeof(run->text), "event %s: %s", kind->name,
			 refusal.what);
		remedy = refusal.remedy;
	} else {
		snprintf(file, sizeof(file), "%s/%s", tracefs, kind->file);
		if (access(file, F_OK) < 0) {
			snprintf(run->text, sizeof(run->text),
				 "event %s: this kernel has no tracer %s that %s",
				 kind->name, kind->name, kind->lacking);
			return emit_error(out, "event", run->text, kind->remedy);
		}
		err = start(run, kind, tracefs, &what);
		if (!err)
			return EXIT_DONE;
		remedy = explain(run, what, err);
	}
	return emit_error(out, err == -EPERM || err == -EACCES ? "capability" : "event",
			  run->text, remedy);
}

bool reports_broken(struct run *run, struct emit *out)
{
	char what[KNOB_NAME_MAX + 16];

	if (!reports_changed(run))
		return false;
	snprintf(what, sizeof(what), "keep %s of", run->changed->knob);
	emit_error(out, "event", run->text, explain(run, what, JOURNAL_HELD));
	return true;
}

void reports_close(struct run *run)
{
	for (unsigned int i = 0; i < run->count; i++)
		if (run->reports_fd[i] > 0)
			close(run->reports_fd[i]);
}
