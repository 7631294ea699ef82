/* SPDX-License-Identifier: MIT */
#include "tasks/tasks.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "files/slurp.h"
#include "host/version.h"
#include "machine/taskfile.h"
#include "tasks/taskline.h"
#include "thread/clock.h"

#define STAT_BYTES   1024
#define STATUS_BYTES (1024 * 1024) /* 65536 groups have 700 KB of numbers */
#define CGROUP_BYTES (64 * 1024)   /* a path of PATH_MAX for each of 12 hierarchies */
#define AGREE_TRIES  3

/* What a thread had used at the begin of the window. */
struct before {
	int tid;
	int64_t cpu_time_ns;
	int64_t at_ns;
};

struct list {
	int *tid;
	unsigned int count, room;
};

struct pass {
	const struct tasks_source *source;
	struct emit *out;
	int64_t tick_ns;
	bool util_clamp;
	struct list threads; /* of the process that is read */
	char stat[STAT_BYTES];
	char cgroup[CGROUP_BYTES];
	char *status;

	struct before *before; /* by tid once it is complete; NULL: no window */
	unsigned int before_count, before_room;
	int64_t begin_boot_ns;

	int64_t processes, listed, vanished, missed, compared;
	int64_t counted; /* threads of the process, as the kernel counts them */
};

typedef int (*visit)(struct pass *p, int pid, int tid);

static bool is_gone(int err)
{
	return err == -ENOENT || err == -ESRCH;
}

static long read_of(const struct pass *p, int pid, int tid, const char *file,
		    char *text, size_t size)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%d/task/%d/%s", p->source->proc, pid, tid,
		 file);
	return slurp(path, text, size);
}

static int read_stat(struct pass *p, int pid, int tid, struct taskstat *stat)
{
	long n = read_of(p, pid, tid, "stat", p->stat, sizeof(p->stat));

	return n < 0 ? (int)n : taskstat_parse(p->stat, stat);
}

static bool read_exact_time(struct pass *p, int pid, int tid, int64_t *ns)
{
	char text[128];

	return read_of(p, pid, tid, "schedstat", text, sizeof(text)) > 0 &&
	       taskschedstat_parse(text, ns) == 0;
}

static int64_t ticks_ns(const struct pass *p, const struct taskstat *stat)
{
	return (stat->user_ticks + stat->system_ticks) * p->tick_ns;
}

static int note_time(struct pass *p, int pid, int tid)
{
	struct before b = { .tid = tid, .at_ns = clock_now_ns() };

	if (!read_exact_time(p, pid, tid, &b.cpu_time_ns)) {
		struct taskstat stat;

		if (read_stat(p, pid, tid, &stat) < 0)
			return 0; /* gone: the second pass has no use for it */
		b.cpu_time_ns = ticks_ns(p, &stat);
	}
	if (p->before_count == p->before_room) {
		unsigned int room = p->before_room ? 2 * p->before_room : 1024;
		struct before *larger = realloc(p->before, room * sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		p->before = larger;
		p->before_room = room;
	}
	p->before[p->before_count++] = b;
	return 0;
}

static int by_tid(const void *a, const void *b)
{
	const struct before *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* What it used since; none if it did not live then, whoever had its number before. */
static void compare(struct pass *p, int tid, const struct taskstat *stat,
		    struct taskline *line)
{
	const struct before key = { .tid = tid };
	const struct before *b = NULL;

	if (p->before_count)
		b = bsearch(&key, p->before, p->before_count, sizeof(key), by_tid);
	if (!b)
		return;
	p->compared++;
	if (stat->start_ticks * p->tick_ns > p->begin_boot_ns ||
	    line->cpu_time_ns < b->cpu_time_ns)
		return;
	line->window_ns = clock_now_ns() - b->at_ns;
	line->window_cpu_ns = line->cpu_time_ns - b->cpu_time_ns;
	line->has_window = true;
}

/* Stat and attributes are two calls: read again until they tell of the same policy. */
static int read_agreeing(struct pass *p, int pid, int tid, struct taskline *line)
{
	for (int tries = 0; tries < AGREE_TRIES; tries++) {
		int err = read_stat(p, pid, tid, &line->stat);

		if (err < 0)
			return err;
		line->attr_error = p->source->get_attr(tid, &line->attr);
		if (line->attr_error == -ESRCH)
			return -ESRCH;
		line->agree = line->attr_error ||
			      (line->attr.policy == line->stat.policy &&
			       line->attr.priority == line->stat.priority);
		if (line->agree)
			break;
	}
	return 0;
}

static void read_slack(struct pass *p, int tid, struct taskline *line)
{
	char path[256];

	/* /proc/PID/task/TID has no such file; that of any TID tells its own thread */
	snprintf(path, sizeof(path), "%s/%d/timerslack_ns", p->source->proc, tid);
	line->slack_error = slurp_int(path, &line->timer_slack_ns);
}

static int show(struct pass *p, int pid, int tid)
{
	struct taskline line = { .pid = pid, .tid = tid, .util_clamp = p->util_clamp };
	int err = read_agreeing(p, pid, tid, &line);
	long n;

	if (err == 0) {
		read_slack(p, tid, &line);
		line.cpu_time_exact = read_exact_time(p, pid, tid, &line.cpu_time_ns);
		if (!line.cpu_time_exact)
			line.cpu_time_ns = ticks_ns(p, &line.stat);
		/* after these, because it also tells whether the thread still lives */
		n = read_of(p, pid, tid, "status", p->status, STATUS_BYTES);
		err = n < 0 && is_gone((int)n) ? (int)n : 0;
		line.status = p->status;
		line.status_error = n < 0 ? (int)n : 0;
		if (!err && read_of(p, pid, tid, "cgroup", p->cgroup, CGROUP_BYTES) > 0)
			line.cgroup = p->cgroup;
	}
	if (is_gone(err)) {
		p->vanished++;
		return 0;
	}
	if (err < 0) { /* without its stat file nothing can be told of a thread */
		p->missed++;
		return 0;
	}
	line.tick_ns = p->tick_ns;
	p->counted = line.stat.threads;
	if (p->before)
		compare(p, tid, &line.stat, &line);
	p->listed++;
	taskline_emit(p->out, &line);
	return -p->out->error;
}

static int append(struct list *l, int tid)
{
	if (l->count == l->room) {
		unsigned int room = l->room ? 2 * l->room : 256;
		int *larger = realloc(l->tid, room * sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		l->tid = larger;
		l->room = room;
	}
	l->tid[l->count++] = tid;
	return 0;
}

/* All at once and before any is read: the kernel finds its place in a list of threads by
 * the last one, and that must not end meanwhile. */
static int list_threads(struct pass *p, int pid)
{
	char path[128];
	struct dirent *entry;
	DIR *dir;
	int err = 0;

	p->threads.count = 0;
	snprintf(path, sizeof(path), "%s/%d/task", p->source->proc, pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!err && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			err = append(&p->threads, atoi(entry->d_name));
	closedir(dir);
	return err;
}

static int visit_process(struct pass *p, int pid, visit each)
{
	int err = list_threads(p, pid);

	if (err == -ENOMEM)
		return err;
	if (err < 0) { /* its number of threads is as unknown as the threads */
		*(is_gone(err) ? &p->vanished : &p->missed) += 1;
		return 0;
	}
	p->processes++;
	p->counted = 0;
	for (unsigned int i = 0; !err && i < p->threads.count; i++)
		err = each(p, pid, p->threads.tid[i]);
	/* begun since the list was made, or skipped by it when another one ended */
	if (p->counted > p->threads.count)
		p->missed += p->counted - p->threads.count;
	return err;
}

static int visit_all(struct pass *p, visit each)
{
	DIR *proc = opendir(p->source->proc);
	struct dirent *entry;
	int err = 0;

	if (!proc)
		return -errno;
	p->processes = p->vanished = p->missed = 0;
	while (!err && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]))
			err = visit_process(p, atoi(entry->d_name), each);
	closedir(proc);
	return err;
}

static int64_t boot_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static bool wait_window(struct options *o)
{
	const int64_t end_ns = clock_now_ns() + o->window_ns;
	int64_t now_ns;

	while ((now_ns = clock_now_ns()) < end_ns) {
		int64_t next_ns = now_ns + hostlink_period_ns(&o->link);
		struct timespec until =
			ns_timespec(next_ns < end_ns ? next_ns : end_ns);

		if (hostlink_check(&o->link, now_ns) != HOSTLINK_UP)
			return false;
		clock_sleep_until(&until);
	}
	return true;
}

static int begin_window(struct pass *p, struct options *o)
{
	int err;

	err = visit_all(p, note_time);
	if (err < 0)
		return err;
	p->begin_boot_ns = boot_now_ns();
	if (p->before_count)
		qsort(p->before, p->before_count, sizeof(*p->before), by_tid);
	return wait_window(o) ? 0 : -EINTR;
}

static int emit_totals(struct pass *p, struct options *o)
{
	emit_begin(p->out, "tasks_end");
	emit_int(p->out, "schema", CONTRACT_SCHEMA);
	emit_int(p->out, "processes", p->processes);
	emit_int(p->out, "threads", p->listed);
	emit_int(p->out, "vanished", p->vanished);
	emit_int(p->out, "not_read", p->missed);
	if (o->window_ns) {
		emit_int(p->out, "window_ns", o->window_ns);
		emit_int(p->out, "window_ended", p->before_count - p->compared);
	} else {
		emit_null(p->out, "window_ns");
		emit_null(p->out, "window_ended");
	}
	emit_int(p->out, "tick_ns", p->tick_ns);
	emit_int(p->out, "uid", geteuid());
	return emit_end(p->out);
}

static enum exit_status fail(struct pass *p, int err)
{
	char message[256];

	if (err == -EINTR)
		return emit_error(p->out, "other", "ended before its time", "");
	snprintf(message, sizeof(message), "cannot list the threads in %.100s: %s",
		 p->source->proc, strerror(-err));
	return emit_error(p->out, "other", message, "");
}

enum exit_status tasks_list(const struct tasks_source *source, struct options *options,
			    struct emit *out)
{
	struct pass *p = calloc(1, sizeof(*p));
	char *status = malloc(STATUS_BYTES);
	int err = p && status ? 0 : -ENOMEM;
	enum exit_status ended = EXIT_INVALID;

	if (!err) {
		*p = (struct pass){ .source = source, .out = out, .status = status };
		p->tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);
		p->util_clamp = access(source->util_clamp, F_OK) == 0;
		err = options->window_ns ? begin_window(p, options) : 0;
		if (!err)
			err = visit_all(p, show);
		if (!err)
			err = emit_totals(p, options);
		ended = err ? fail(p, err) : EXIT_DONE;
		free(p->before);
		free(p->threads.tid);
	}
	free(status);
	free(p);
	return ended;
}

/* The numbers in a /proc of other numbers would be asked of the wrong threads. */
static bool proc_is_ours(void)
{
	char target[32];
	ssize_t n = readlink("/proc/self", target, sizeof(target) - 1);

	target[n > 0 ? n : 0] = '\0';
	return n > 0 && atoi(target) == getpid();
}

enum exit_status tasks(struct options *options, struct emit *out)
{
	const struct tasks_source here = {
		.proc = "/proc",
		.util_clamp = "/proc/sys/kernel/sched_util_clamp_min",
		.get_attr = schedattr_get,
	};

	if (!proc_is_ours())
		return emit_error(out, "missing",
				  "/proc is not mounted, or it is that of another PID "
				  "namespace",
				  "mount it: mount -t proc proc /proc");
	return tasks_list(&here, options, out);
}
