/* SPDX-License-Identifier: MIT */
#include "load/proctree.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "thread/clock.h"

struct process {
	struct procstat stat;
	bool below;
};

/* All processes of the machine, by pid. */
struct table {
	struct process *process;
	unsigned int count, room;
};

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->stat.pid > y->stat.pid) - (x->stat.pid < y->stat.pid);
}

static const struct process *find(const struct table *t, int pid)
{
	const struct process key = { .stat.pid = pid };

	return t->count ? bsearch(&key, t->process, t->count, sizeof(key), by_pid)
			: NULL;
}

static bool grow(struct table *t)
{
	unsigned int room = t->room ? 2 * t->room : 1024;
	struct process *larger;

	if (t->count < t->room)
		return true;
	larger = realloc(t->process, room * sizeof(*larger));
	if (!larger)
		return false;
	t->process = larger;
	t->room = room;
	return true;
}

static bool is_below(const struct table *t, int parent)
{
	const struct process *p = find(t, parent);

	return parent == getpid() || (p && p->below);
}

/* Marks the descendants of this process: one round for each generation. */
static void mark_below(struct table *t)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (unsigned int i = 0; i < t->count; i++) {
			struct process *p = &t->process[i];

			if (p->below || !is_below(t, p->stat.parent))
				continue;
			p->below = true;
			changed = true;
		}
	}
}

/* What cannot be read is left out: a process that ends while we look is simply gone. */
static struct table read_all(void)
{
	struct table t = { 0 };
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		struct procstat s;

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    procstat_read(atoi(entry->d_name), &s) < 0)
			continue;
		if (!grow(&t))
			break;
		t.process[t.count++] = (struct process){ .stat = s };
	}
	if (proc)
		closedir(proc);
	if (t.count)
		qsort(t.process, t.count, sizeof(*t.process), by_pid);
	mark_below(&t);
	return t;
}

void proctree_look(struct proctree *out, proctree_visitor *visit, void *context)
{
	const int64_t tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);
	struct table t = read_all();
	struct rusage waited;

	getrusage(RUSAGE_CHILDREN, &waited);
	*out = (struct proctree){
		.cpu_ns = (waited.ru_utime.tv_sec + waited.ru_stime.tv_sec) * NS_PER_S +
			  (waited.ru_utime.tv_usec + waited.ru_stime.tv_usec) * 1000,
	};
	for (unsigned int i = 0; i < t.count; i++) {
		const struct procstat *s = &t.process[i].stat;

		if (!t.process[i].below)
			continue;
		out->processes += s->state != 'Z';
		out->cpu_ns += (s->cpu_ticks + s->children_ticks) * tick_ns;
		if (visit)
			visit(context, s);
	}
	free(t.process);
}

/* Signals all below; returns how many of them were not yet in the table before, which it
 * replaces. */
static unsigned int signal_all(int signo, struct table *before)
{
	struct table t = read_all();
	unsigned int fresh = 0;

	for (unsigned int i = 0; i < t.count; i++) {
		const struct process *p = &t.process[i],
				     *known = find(before, p->stat.pid);

		/* also the zombies: other threads of such a process may be alive */
		if (p->below && kill(p->stat.pid, signo) == 0 && p->stat.state != 'Z')
			fresh += !known || !known->below;
	}
	free(before->process);
	*before = t;
	return fresh;
}

static bool all_gone_within(int timeout_ms)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	for (int waited_ms = 0;; waited_ms += 10) {
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0)
			return true; /* no child is left */
		if (waited_ms >= timeout_ms)
			return false;
		nanosleep(&pause, NULL);
	}
}

unsigned int proctree_end(int timeout_ms)
{
	struct table asked = { 0 }, dying = { 0 };
	unsigned int killed = 0;

	signal_all(SIGTERM, &asked);
	signal_all(SIGCONT, &asked); /* a stopped process cannot end */
	free(asked.process);
	if (all_gone_within(timeout_ms))
		return 0;

	/* they may go on forking while we kill, and orphans come to us: until none is left */
	for (int rounds = 0; rounds < 100 && !all_gone_within(20); rounds++)
		killed += signal_all(SIGKILL,
				     &dying); /* one that takes long counts once */
	free(dying.process);
	return killed;
}
