/* SPDX-License-Identifier: MIT */
#include "load/workers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/slurp.h"
#include "thread/clock.h"

#define STATUS_SIZE 8192 /* its lists of CPUs grow with the machine */

int64_t workers_status_count(const char *text, const char *name)
{
	size_t size = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, size) != 0 || line[size] != ':')
			continue;
		line += size + 1;
		line += strspn(line, " \t");
		return isdigit((unsigned char)*line) ? strtoll(line, NULL, 10) : -1;
	}
	return -1;
}

static void read_switches(struct worker *one)
{
	char path[64], text[STATUS_SIZE];

	snprintf(path, sizeof(path), "/proc/%d/status", one->pid);
	if (slurp(path, text, sizeof(text)) < 0)
		text[0] = '\0';
	one->voluntary_switches = workers_status_count(text, "voluntary_ctxt_switches");
	one->involuntary_switches =
		workers_status_count(text, "nonvoluntary_ctxt_switches");
}

/* A pid that has begun anew is another process. */
static const struct worker *find_before(const struct workers *w, int pid,
					int64_t started_ticks)
{
	const struct worker *table = w->table[!w->now];
	unsigned int low = 0, high = w->count[!w->now];

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;

		if (table[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == w->count[!w->now] || table[low].pid != pid ||
	    table[low].started_ticks != started_ticks)
		return NULL;
	return &table[low];
}

void workers_see(void *context, const struct procstat *process)
{
	struct workers *w = context;
	bool known = find_before(w, process->pid, process->started_ticks);
	struct worker *one;

	/* one that was watched always finds room: it must not seem to be gone */
	if (!known && w->count[!w->now] + w->fresh >= WORKERS_MAX) {
		w->not_watched++;
		return;
	}
	w->fresh += !known;
	one = &w->table[w->now][w->count[w->now]++];
	*one = (struct worker){
		.pid = process->pid,
		.parent = process->parent,
		.state = process->state,
		.started_ticks = process->started_ticks,
		.cpu_ticks = process->cpu_ticks,
	};
	memcpy(one->name, process->name, sizeof(one->name) - 1);
	read_switches(one);
}

static void emit_growth(struct emit *out, const char *key, int64_t before, int64_t now)
{
	if (before < 0 || now < before)
		emit_null(out, key);
	else
		emit_int(out, key, now - before);
}

/* `before` NULL: it began in this window. `now` NULL: it ended in it. */
static void emit_worker(struct emit *out, const struct worker *before,
			const struct worker *now)
{
	const int64_t tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);
	const struct worker *one = now ? now : before;
	const struct worker none = { 0 }, unknown = { .cpu_ticks = -1,
						      .voluntary_switches = -1,
						      .involuntary_switches = -1 };
	char state[2] = { one->state, '\0' };

	if (!before)
		before = &none;
	emit_open(out, NULL, '{');
	emit_int(out, "pid", one->pid);
	emit_int(out, "parent", one->parent);
	emit_int(out, "started_ns", one->started_ticks * tick_ns);
	emit_text(out, "name", one->name);
	emit_text(out, "state", now ? state : "gone");
	if (!now)
		now = &unknown;
	emit_growth(out, "cpu_ns", before->cpu_ticks * tick_ns,
		    now->cpu_ticks * tick_ns);
	emit_growth(out, "voluntary_switches", before->voluntary_switches,
		    now->voluntary_switches);
	emit_growth(out, "involuntary_switches", before->involuntary_switches,
		    now->involuntary_switches);
	emit_close(out, '}');
}

void workers_emit(struct workers *w, int64_t now_ns, struct emit *out)
{
	const struct worker *old = w->table[!w->now], *seen = w->table[w->now];
	unsigned int i = 0, k = 0, olds = w->count[!w->now], seens = w->count[w->now];

	emit_begin(out, "load_window");
	emit_int(out, "from_ns", w->from_ns);
	emit_int(out, "to_ns", now_ns);
	emit_open(out, "processes", '[');
	while (i < olds || k < seens) {
		bool gone = k == seens || (i < olds && old[i].pid < seen[k].pid);
		bool came = i == olds || (k < seens && seen[k].pid < old[i].pid);

		/* the same pid again, but another process */
		if (!gone && !came && old[i].started_ticks != seen[k].started_ticks)
			gone = true;
		emit_worker(out, came ? NULL : &old[i], gone ? NULL : &seen[k]);
		i += !came;
		k += !gone;
	}
	emit_close(out, ']');
	emit_int(out, "not_watched", w->not_watched);
	emit_end(out);

	w->now = !w->now;
	w->count[w->now] = 0;
	w->fresh = w->not_watched = 0;
	w->from_ns = now_ns;
}
