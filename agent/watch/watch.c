/* SPDX-License-Identifier: MIT */
#include "watch/watch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "thread/clock.h"
#include "thread/rights.h"
#include "thread/wakecost.h"
#include "watch/flowevents.h"
#include "watch/lastcloser.h"
#include "watch/perfevent.h"
#include "watch/watchcost.h"
#include "watch/watchflow.h"
#include "watch/watchkinds.h"
#include "watch/watchreport.h"
#include "watch/watchthread.h"

#define LOOK_NS      INT64_C(50000000) /* between two looks into the rings */
#define TRIES        20
#define RECORD_BYTES 65536       /* the longest record of the kernel */
#define LOCK_PROBE   "lock_slow" /* of the host: src/rtscope/programs/probes.py */
#define STACK_SHARE  4           /* of them for one system call */

static struct watched *find(struct watch *w, int tid)
{
	for (unsigned int i = 0; i < w->threads; i++)
		if (w->thread[i]->tid == tid)
			return w->thread[i];
	return NULL;
}

static void stop_stacks(struct watch *w, struct watched *t)
{
	for (unsigned int i = 0; i < w->kinds; i++) {
		t->sampled[i] = w->stacks_each;
		watchthread_go_on(w, t, i);
	}
}

/* How late a thread of the agent wakes while it is watched as those of the process will
 * be; returns how long a call takes it then, 0 if that is unknown. What the kernel refuses
 * of its events it may still grant of theirs. */
static int64_t measure_watched(struct watch *w)
{
	int refused[PERFEVENT_MAX_KINDS];
	const int64_t vanished = w->vanished;
	struct wakecost watched;
	int64_t call_ns = 0;

	memcpy(refused, w->refused, sizeof(refused));
	if (watchthread_attach(w, (int)syscall(SYS_gettid), true) == 0 && w->threads) {
		flowevents_look_at_policies(w);
		watched = wakecost_measure();
		w->cost[3].counted_ns = watched.alone_ns;
		w->cost[4].counted_ns = watched.beside_ns;
		stop_stacks(w, w->thread[0]);
		call_ns = watchcost_call_ns();
		watchthread_close(w, w->thread[0]);
		w->threads = 0;
	}
	memcpy(w->refused, refused, sizeof(refused));
	w->vanished = vanished;
	return call_ns;
}

/* Attaches to the threads that are there now. -ESRCH if the process is not. */
static int look_for_threads(struct watch *w)
{
	const int64_t now_ns = clock_now_ns();
	const unsigned int before = w->threads;
	char path[64];
	struct dirent *entry;
	DIR *dir;
	int err = 0;
	int64_t beyond = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", w->pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	for (unsigned int i = 0; i < w->threads; i++)
		w->thread[i]->alive = false;
	while (!err && (entry = readdir(dir))) {
		int tid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name)
								   : 0;
		struct watched *t = tid ? find(w, tid) : NULL;

		if (t)
			t->alive = true;
		else if (tid && w->threads == WATCH_MAX_THREADS)
			beyond++;
		else if (tid)
			err = watchthread_attach(w, tid, false);
	}
	closedir(dir);
	if (beyond > w->not_watched)
		w->not_watched = beyond;
	if (w->threads > before && clock_now_ns() - now_ns > w->opening_ns)
		w->opening_ns = clock_now_ns() - now_ns;
	return err;
}

/* One that executes a program is none of its threads for a moment. */
static int begin_with_threads(struct watch *w)
{
	int err = 0;

	for (int i = 0; i < TRIES && !err && !w->threads; i++) {
		const struct timespec until = ns_timespec(clock_now_ns() + LOOK_NS);

		if (i)
			clock_sleep_until(&until);
		w->vanished = 0;
		err = look_for_threads(w);
	}
	return !err && !w->threads ? -ESRCH : err;
}

/* Of each call that can block a few; of a word of memory the waits or the wakers. */
static bool is_wanted(struct watch *w, struct watched *t, const char *kind,
		      const struct perfsample *sample, struct timeline_record *out)
{
	struct timeline_call *c;

	if (!watchflow_sampled_call(&w->flow, sample, out))
		return true;
	if (out->kind == TIMED_LOCK_WAIT)
		return (out->what == TIMELINE_CALL) == !strcmp(kind, "lock_wait");
	c = timeline_row(&t->line, out);
	if (out->gone && !(c && c->times.count)) /* none of its kind was decided */
		return false;
	if (!c)
		return !out->cannot_block;
	c->could += !out->cannot_block && !out->gone;
	c->could_not += out->cannot_block;
	return !out->cannot_block && c->sent++ < w->stacks_each / STACK_SHARE;
}

static void take_sample(struct watch *w, struct watched *t, unsigned int i,
			const struct perfsample *sample)
{
	struct timeline_record call = { .call = "" };

	if (t->sampled[i] >= w->stacks_each || w->stacks >= WATCHTHREAD_MAX_STACKS)
		return;
	if (w->kind[i].is_call && !w->flow.err &&
	    !is_wanted(w, t, w->kind[i].name, sample, &call)) {
		t->unsent[i]++;
		return;
	}
	t->sampled[i]++;
	w->stacks++;
	if (strncmp(w->kind[i].name, LOCK_PROBE, strlen(LOCK_PROBE)) == 0)
		watchflow_mark(w, t->tid, sample->t_ns);
	if (w->kind[i].type == PERF_TYPE_SOFTWARE)
		watchflow_fault(w, t->tid, sample->t_ns,
				w->kind[i].config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	watchreport_sample(w, t, i, sample, &call);
}

static void take_own(struct watch *w, struct watched *t, struct perfring *ring)
{
	struct perfsample sample;

	while (perfring_take(ring, w->buffer, &sample)) {
		if (sample.program)
			watchreport_executed(w, t, &sample);
		for (unsigned int i = 0; i < w->kinds; i++)
			if (t->event[i].sampler_fd >= 0 && t->event[i].id == sample.id)
				take_sample(w, t, i, &sample);
	}
}

static void take_of_cpu(struct watch *w, unsigned int cpu)
{
	const unsigned int cpus = w->places.cpus;
	struct perfsample sample;

	while (perfring_take(&w->places.stacks[cpu], w->buffer, &sample))
		for (unsigned int at = 0; at < w->threads; at++) {
			struct watched *t = w->thread[at];
			const struct perfevent *e = t->of_cpu;

			for (unsigned int i = 0; e && i < w->kinds; i++)
				if (e[i * cpus + cpu].sampler_fd >= 0 &&
				    e[i * cpus + cpu].id == sample.id)
					take_sample(w, t, i, &sample);
		}
}

static void take_stacks(struct watch *w)
{
	for (unsigned int cpu = 0; cpu < w->places.cpus; cpu++)
		take_of_cpu(w, cpu);
	for (unsigned int i = 0; i < w->threads; i++) {
		struct watched *t = w->thread[i];

		take_own(w, t, &t->ring);
		take_own(w, t, &t->probes);
		for (unsigned int kind = 0; kind < w->kinds; kind++)
			watchthread_go_on(w, t, kind);
	}
}

/* Threads that have ended make room for others; all do where one has executed a program
 * and has another number since, or no events any more. */
static void take_all(struct watch *w)
{
	const int64_t until_ns = clock_now_ns();
	unsigned int kept = 0;

	take_stacks(w);
	watchflow_take(w, until_ns);
	for (unsigned int i = 0; i < w->threads; i++) {
		struct watched *t = w->thread[i];

		if (t->alive && !w->executed) {
			w->thread[kept++] = t;
			continue;
		}
		watchreport_thread(w, t);
		watchthread_close(w, t);
	}
	w->threads = kept;
	w->executed = false;
}

static void end_all(struct watch *w)
{
	struct lastcloser last;

	take_stacks(w);
	watchflow_take(w, INT64_MAX);
	for (unsigned int i = 0; i < w->threads; i++)
		watchreport_thread(w, w->thread[i]);
	last = lastcloser_begin(true);
	for (unsigned int i = 0; i < w->threads; i++)
		watchthread_close(w, w->thread[i]);
	w->threads = 0;
	watchflow_end(w);
	for (unsigned int i = 0; i < w->places.cpus; i++)
		w->samples_lost += (int64_t)w->places.stacks[i].lost;
	watchplaces_close(&w->places);
	lastcloser_end(&last);
}

static enum hostlink_end sample_until(struct watch *w, struct options *o)
{
	int64_t now_ns = clock_now_ns();
	const int64_t end_ns = now_ns + o->duration_ns;
	enum hostlink_end ended = HOSTLINK_UP;

	while (now_ns < end_ns && ended == HOSTLINK_UP && !w->out->error) {
		int64_t next_ns = now_ns + LOOK_NS;
		struct timespec until =
			ns_timespec(next_ns < end_ns ? next_ns : end_ns);

		clock_sleep_until(&until);
		take_all(w);
		if (look_for_threads(w) == -ESRCH) {
			w->gone = true;
			break;
		}
		lastcloser_close();
		now_ns = clock_now_ns();
		ended = hostlink_check(&o->link, now_ns);
	}
	return ended;
}

static enum exit_status refuse_process(struct watch *w, int err)
{
	char message[128];

	snprintf(message, sizeof(message), "cannot watch process %d: %s", w->pid,
		 err == -ESRCH ? "there is none" : strerror(-err));
	return emit_error(w->out, err == -ESRCH ? "missing" : "permission", message,
			  err == -ESRCH ? "list processes: rtscope tasks"
					: "run as root or with sudo");
}

enum exit_status watch(struct options *options, struct emit *out)
{
	static struct watch w; /* zero, and too large for a stack */
	struct wakecost plain;
	enum hostlink_end ended;
	int64_t call_ns;
	int err;

	w.out = out;
	w.pid = options->pid;
	w.stacks_each = options->stacks;
	w.ring_bytes = WATCHTHREAD_RING_BYTES;
	perfevent_raise_descriptors();
	watchkinds_make(&w, options);
	w.buffer = malloc(RECORD_BYTES);
	if (!w.buffer)
		return emit_error(out, "memlock", "no memory to watch a process", "");
	wakecost_begin(w.pid);
	plain = wakecost_measure();
	w.cost[3].name = "wakeup";
	w.cost[3].plain_ns = plain.alone_ns;
	w.cost[4].name = "wakeup_beside";
	w.cost[4].plain_ns = plain.beside_ns;
	if (rights_drop_to_watch(options->probes > 0))
		return emit_error(out, "other", "cannot drop capabilities", "");
	watchflow_begin(&w);
	if (!w.flow.err)
		watchplaces_open(&w.places, &w.flow.online);
	else
		w.places.err = w.flow.err;
	call_ns = measure_watched(&w);
	wakecost_end();
	watchcost_measure(&w, call_ns);
	w.from_ns = clock_now_ns();
	err = begin_with_threads(&w);
	if (err)
		return refuse_process(&w, err);
	w.opening_ns = 0; /* what was there before has all of its time yet */
	if (!w.flow.err)
		flowevents_look_at_policies(&w); /* before a wait ends unseen */
	watchreport_begin(&w);
	ended = sample_until(&w, options);
	w.to_ns = clock_now_ns();
	end_all(&w);
	err = watchreport_end(&w, hostlink_word(ended));
	free(w.buffer);
	return err ? EXIT_INVALID : EXIT_DONE;
}
