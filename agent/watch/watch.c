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

#include "files/slurp.h"
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

#define LOOK_NS      INT64_C(50000000) /* between two looks into the rings */
#define RECORD_BYTES 65536             /* the longest record of the kernel */
#define RING_BYTES   (1 << 20)         /* of each ring of a few threads; 2^n */
#define FEW_THREADS  8
#define MANY_BYTES   (1 << 17) /* else: 33 MB for all */
#define SAMPLE_BYTES (PERFEVENT_STACK_BYTES + 512)
#define LOCK_PROBE   "lock_slow" /* of the host: src/rtscope/programs/probes.py */
#define STACK_SHARE  4           /* of them for one system call */
#define UNSENT       4           /* so many others are copied for each that is sent */
#define MAX_STACKS   4096        /* of all threads: 90 MB for the host */

static void read_name(struct watch *w, struct watched *t)
{
	char path[64];
	long n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", w->pid, t->tid);
	n = slurp(path, t->name, sizeof(t->name));
	if (n > 0 && t->name[n - 1] == '\n')
		t->name[n - 1] = '\0';
}

static struct watched *find(struct watch *w, int tid)
{
	for (unsigned int i = 0; i < w->threads; i++)
		if (w->thread[i]->tid == tid)
			return w->thread[i];
	return NULL;
}

/* Of software events as many as the ring has room for; of others all, up to a limit that
 * is kept when the ring is emptied. */
static void go_on(struct watch *w, struct watched *t, unsigned int kind)
{
	const bool by_hand = w->kind[kind].by_hand;
	const uint64_t room = w->ring_bytes / SAMPLE_BYTES;
	const uint64_t most = room / (w->samplers ? w->samplers : 1);
	const uint64_t sampled = t->sampled[kind];
	const bool enough = sampled >= w->stacks_each || w->stacks >= MAX_STACKS ||
			    t->unsent[kind] >= UNSENT * w->stacks_each;
	const uint64_t left = enough ? 0 : w->stacks_each - sampled;
	unsigned int events;
	struct perfevent *e = watched_events(w, t, kind, &events);

	for (; events-- > 0; e++) {
		if (e->sampler_fd < 0)
			continue;
		if (by_hand && e->running == enough)
			perfevent_run(e, !enough);
		else if (!by_hand && left && sampled >= e->granted)
			perfevent_grant(e, (unsigned int)(left < most ? left
							  : most      ? most
								      : 1));
	}
}

static int open_own(struct watch *w, struct watched *t, unsigned int i)
{
	struct perfevent *e = &t->event[i];
	int err = perfevent_open(e, &w->kind[i], t->tid, PERFEVENT_OWN);

	if (!err && e->sampler_fd >= 0)
		err = perfring_join(w->kind[i].type == PERF_TYPE_SOFTWARE ? &t->ring
									  : &t->probes,
				    e, w->ring_bytes);
	if (err)
		perfevent_close(e);
	return err;
}

static int open_event(struct watch *w, struct watched *t, unsigned int i)
{
	struct watchplaces *p = &w->places;
	unsigned int events;
	struct perfevent *e = watched_events(w, t, i, &events);
	int err = w->refused[i];

	if (err)
		return err;
	if (e == &t->event[i])
		return open_own(w, t, i);
	for (unsigned int at = 0; !err && at < events; at++) {
		err = perfevent_open(&e[at], &w->kind[i], t->tid, p->cpu[at]);
		if (!err && e[at].sampler_fd >= 0)
			err = perfring_join(&p->stacks[at], &e[at], 0);
	}
	p->err = err;
	return err;
}

static void close_events(struct perfevent *e, size_t count)
{
	for (size_t i = 0; i < count; i++)
		perfevent_close(&e[i]);
}

static void leave_cpus(struct watch *w, struct watched *t)
{
	if (t->of_cpu)
		close_events(t->of_cpu, (size_t)w->kinds * w->places.cpus);
	free(t->of_cpu);
	t->of_cpu = NULL;
	w->places.threads -= t->on_cpus;
	t->on_cpus = false;
}

static void choose_place(struct watch *w, struct watched *t)
{
	const size_t count = (size_t)w->kinds * w->places.cpus;
	const bool real_time = flowevents_is_real_time(t->tid);

	if (watchplaces_have_room(&w->places, real_time))
		t->of_cpu = malloc(count * sizeof(*t->of_cpu));
	if (!t->of_cpu) {
		w->places.elsewhere += real_time;
		return;
	}
	for (size_t i = 0; i < count; i++)
		t->of_cpu[i] = (struct perfevent){ .counter_fd = -1, .sampler_fd = -1 };
	t->on_cpus = true;
	w->places.threads++;
}

static bool is_there(const struct watch *w, const struct watched *t)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", w->pid, t->tid);
	return access(path, F_OK) == 0;
}

/* A kind that is refused for a thread is not tried for others: the cause is the same,
 * but where the thread has ended. The last ones first: a probe makes the page that it
 * is in fault once, and that is to be seen. */
static int open_events(struct watch *w, struct watched *t)
{
	for (unsigned int i = w->kinds; i-- > 0;) {
		int err;

		if (t->own && w->kind[i].path) /* no wake-up, and slow to close */
			continue;
		err = open_event(w, t, i);

		if (err && t->on_cpus && w->places.err) { /* then all are its own */
			leave_cpus(w, t);
			w->places.elsewhere += flowevents_is_real_time(t->tid);
			return open_events(w, t);
		}
		if (err == -ESRCH && !is_there(w, t))
			return err;
		/* a file that may not be looked up is "no such process", too */
		w->refused[i] = err == -ESRCH ? -EPERM : err;
	}
	return 0;
}

/* Samplers first: what is counted has a stack. */
static void begin_events(struct watch *w, struct watched *t)
{
	for (unsigned int i = 0; i < w->kinds; i++)
		go_on(w, t, i);
	for (unsigned int i = 0; i < w->kinds; i++) {
		unsigned int events;
		struct perfevent *e = watched_events(w, t, i, &events);

		for (; events-- > 0; e++)
			if (e->counter_fd >= 0)
				perfevent_count_on(e);
	}
}

static void close_thread(struct watch *w, struct watched *t)
{
	watchflow_detach(w, t);
	perfring_close(&t->ring);
	perfring_close(&t->probes);
	close_events(t->event, w->kinds);
	leave_cpus(w, t);
	free(t);
}

static int attach(struct watch *w, int tid, bool own)
{
	struct watched *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->tid = tid;
	t->own = own;
	for (unsigned int i = 0; i < w->kinds; i++)
		t->event[i].counter_fd = t->event[i].sampler_fd = -1;
	flowevents_init(&t->flow);
	if (w->threads >= FEW_THREADS)
		w->ring_bytes = MANY_BYTES;
	read_name(w, t);
	choose_place(w, t);
	if (open_events(w, t)) { /* it ended meanwhile */
		close_thread(w, t);
		w->vanished++;
		return 0;
	}
	t->alive = true;
	t->from_ns = clock_now_ns();
	w->thread[w->threads++] = t;
	watchflow_attach(w, t); /* first: of what has a stack the begin is known */
	begin_events(w, t);
	return 0;
}

/* How late a thread of the agent wakes while it is watched as those of the process will
 * be. What the kernel refuses of its events it may still grant of theirs. */
static void measure_wakeup(struct watch *w)
{
	int refused[PERFEVENT_MAX_KINDS];
	const int64_t vanished = w->vanished;
	struct wakecost watched;

	memcpy(refused, w->refused, sizeof(refused));
	if (attach(w, (int)syscall(SYS_gettid), true) == 0 && w->threads) {
		flowevents_look_at_policies(w);
		watched = wakecost_measure();
		w->cost[3].counted_ns = watched.alone_ns;
		w->cost[4].counted_ns = watched.beside_ns;
		close_thread(w, w->thread[0]);
		w->threads = 0;
	}
	memcpy(w->refused, refused, sizeof(refused));
	w->vanished = vanished;
}

/* Attaches to the threads that are there now. -ESRCH if the process is not. */
static int look_for_threads(struct watch *w)
{
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
			err = attach(w, tid, false);
	}
	closedir(dir);
	if (beyond > w->not_watched)
		w->not_watched = beyond;
	return err;
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

	if (t->sampled[i] >= w->stacks_each || w->stacks >= MAX_STACKS)
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
			go_on(w, t, kind);
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
		close_thread(w, t);
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
	last = lastcloser_begin();
	for (unsigned int i = 0; i < w->threads; i++)
		close_thread(w, w->thread[i]);
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
	int err;

	w.out = out;
	w.pid = options->pid;
	w.stacks_each = options->stacks;
	w.ring_bytes = RING_BYTES;
	perfevent_raise_descriptors();
	watchkinds_make(&w, options);
	w.buffer = malloc(RECORD_BYTES);
	if (!w.buffer)
		return emit_error(out, "memlock", "no memory to watch a process", "");
	wakecost_begin();
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
	measure_wakeup(&w);
	wakecost_end();
	watchcost_measure(&w);
	w.from_ns = clock_now_ns();
	err = look_for_threads(&w);
	if (!err && !w.threads)
		err = -ESRCH;
	if (err)
		return refuse_process(&w, err);
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
