/* SPDX-License-Identifier: MIT */
#include "proctree.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "procstat.h"

#define MAX_PROCESSES 32768

struct process {
	int pid, parent;
	bool below;
	char state;
	int64_t ticks;
};

/* All processes of the machine; returns how many, 0 also on failure. */
static unsigned int read_all(struct process **out)
{
	struct process *all = malloc(MAX_PROCESSES * sizeof(*all));
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned int n = 0;

	while (all && proc && n < MAX_PROCESSES && (entry = readdir(proc))) {
		struct procstat s;

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    procstat_read(atoi(entry->d_name), &s) < 0)
			continue;
		all[n++] = (struct process){
			.pid = s.pid,
			.parent = s.parent,
			.state = s.state,
			.ticks = s.cpu_ticks + s.children_ticks,
		};
	}
	if (proc)
		closedir(proc);
	*out = all;
	return n;
}

static bool is_below(const struct process *all, unsigned int n, int parent)
{
	if (parent == getpid())
		return true;
	for (unsigned int i = 0; i < n; i++)
		if (all[i].pid == parent)
			return all[i].below;
	return false;
}

/* Marks the descendants of this process: one round for each generation. */
static void mark_below(struct process *all, unsigned int n)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (unsigned int i = 0; i < n; i++) {
			if (all[i].below || !is_below(all, n, all[i].parent))
				continue;
			all[i].below = true;
			changed = true;
		}
	}
}

void proctree_look(struct proctree *out)
{
	const int64_t tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);
	struct process *all;
	unsigned int n = read_all(&all);
	struct rusage waited;

	getrusage(RUSAGE_CHILDREN, &waited);
	*out = (struct proctree){
		.cpu_ns = (waited.ru_utime.tv_sec + waited.ru_stime.tv_sec) * NS_PER_S +
			  (waited.ru_utime.tv_usec + waited.ru_stime.tv_usec) * 1000,
	};
	mark_below(all, n);
	for (unsigned int i = 0; i < n; i++) {
		if (!all[i].below)
			continue;
		out->processes += all[i].state != 'Z';
		out->cpu_ns += all[i].ticks * tick_ns;
	}
	free(all);
}

static unsigned int signal_all(int signo)
{
	struct process *all;
	unsigned int n = read_all(&all), sent = 0;

	mark_below(all, n);
	for (unsigned int i = 0; i < n; i++)
		if (all[i].below && all[i].state != 'Z')
			sent += kill(all[i].pid, signo) == 0;
	free(all);
	return sent;
}

static bool all_gone_within(int patience_ms)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	for (int waited_ms = 0;; waited_ms += 10) {
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0)
			return true; /* no child is left */
		if (waited_ms >= patience_ms)
			return false;
		nanosleep(&pause, NULL);
	}
}

unsigned int proctree_end(int patience_ms)
{
	unsigned int killed = 0;

	signal_all(SIGTERM);
	signal_all(SIGCONT); /* a stopped process cannot end */
	if (all_gone_within(patience_ms))
		return 0;

	/* they may go on forking while we kill, and orphans come to us: until none is left */
	for (int rounds = 0; rounds < 100 && !all_gone_within(20); rounds++)
		killed += signal_all(SIGKILL);
	return killed;
}
