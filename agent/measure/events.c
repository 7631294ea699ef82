/* SPDX-License-Identifier: MIT */
#include "measure/events.h"

#include <stdio.h>
#include <string.h>

#include "measure/netpair.h"

enum exit_status events_open(struct run *run, struct emit *out)
{
	const struct event_choice *choice = &run->options->event;
	char message[OPTIONS_TEXT];

	if (!choice->kind)
		return EXIT_DONE;
	run->way = eventways_alloc(run->count, choice->kind);
	if (!run->way)
		return emit_error(out, "memlock", "no memory for the events",
				  "measure fewer CPUs with --cpus");
	for (unsigned int i = 0; i < run->count; i++) {
		struct event_refusal refusal = { 0 };

		run->way[i].opened = true;
		run->way[i].ends.journal = &run->journal;
		if (!choice->kind->open(&run->way[i].ends, choice, &refusal))
			continue;
		snprintf(message, sizeof(message), "event %s: %s", choice->kind->name,
			 refusal.why);
		return emit_error(out, refusal.cause, message, refusal.remedy);
	}
	return EXIT_DONE;
}

static bool is_broken(struct run *run, unsigned int i, struct emit *out)
{
	const struct eventway *w = &run->way[i];
	const char *what, *name = w->kind->name;
	int cpu = run->sampler[i].cpu;
	int err = eventway_failure(w, &what);

	if (err) {
		snprintf(run->text, sizeof(run->text),
			 "event %s: cannot %s on CPU %d any more: %s", name, what, cpu,
			 strerror(err));
		emit_error(out, "event", run->text,
			   "nothing of this run is kept; measure again when it works");
		return true;
	}
	if (w->full && !w->sent) {
		snprintf(run->text, sizeof(run->text),
			 "event %s: no event was sent to CPU %d: each of %llu found a "
			 "full queue",
			 name, cpu, (unsigned long long)w->full);
		emit_error(out, "event", run->text,
			   "raise its limit (of signals: ulimit -i), or choose "
			   "another --event");
		return true;
	}
	if (w->sent && w->lost == w->sent) {
		snprintf(run->text, sizeof(run->text),
			 "event %s: none of %llu events came through to CPU %d", name,
			 (unsigned long long)w->sent, cpu);
		emit_error(out, "event", run->text,
			   "look at both ends, or choose another --event");
		return true;
	}
	return false;
}

bool events_broken(struct run *run, struct emit *out)
{
	for (unsigned int i = 0; run->way && i < run->count; i++)
		if (is_broken(run, i, out))
			return true;
	return false;
}

void events_close(struct run *run)
{
	for (unsigned int i = 0; run->way && i < run->count; i++)
		if (run->way[i].opened)
			event_ends_close(&run->way[i].ends);
	netpair_give_back();
}
