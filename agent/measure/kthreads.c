/* SPDX-License-Identifier: MIT */
#include "measure/kthreads.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/slurp.h"
#include "machine/procstat.h"
#include "thread/clock.h"

#define PF_KTHREAD   0x00200000 /* include/linux/sched.h, stable since 2.6.27 */
#define MAX_REPORTED 32

/* In ns where the kernel has /proc/TID/schedstat (CONFIG_SCHED_INFO), else in ticks. */
static int64_t cpu_time_ns(int tid, const struct procstat *stat)
{
	char path[64];
	int64_t ns;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	if (slurp_int(path, &ns) == 0)
		return ns;
	return stat->cpu_ticks * (NS_PER_S / sysconf(_SC_CLK_TCK));
}

static int append(struct kthreads *k, unsigned int *room, const struct procstat *stat)
{
	struct kthread *t;

	if (k->count == *room) {
		unsigned int larger = *room ? 2 * *room : 256;

		t = realloc(k->thread, larger * sizeof(*t));
		if (!t)
			return -ENOMEM;
		k->thread = t;
		*room = larger;
	}
	t = &k->thread[k->count++];
	*t = (struct kthread){
		.tid = stat->pid,
		.cpu = stat->cpu,
		.cpu_time_ns = cpu_time_ns(stat->pid, stat),
	};
	memcpy(t->name, stat->name, sizeof(t->name));
	return 0;
}

int kthreads_take(struct kthreads *out)
{
	DIR *proc = opendir("/proc");
	unsigned int room = 0;
	struct dirent *entry;
	int err = 0;

	*out = (struct kthreads){ 0 };
	if (!proc)
		return -errno;

	while (!err && (entry = readdir(proc))) {
		struct procstat stat;

		/* a thread that ends while we look is simply gone */
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    procstat_read(atoi(entry->d_name), &stat) < 0)
			continue;
		if (stat.flags & PF_KTHREAD)
			err = append(out, &room, &stat);
	}
	closedir(proc);
	if (err)
		kthreads_free(out);
	return err;
}

void kthreads_free(struct kthreads *k)
{
	free(k->thread);
	*k = (struct kthreads){ 0 };
}

static int by_time(const void *a, const void *b)
{
	const struct kthread *x = a, *y = b;

	return (x->cpu_time_ns < y->cpu_time_ns) - (x->cpu_time_ns > y->cpu_time_ns);
}

static int64_t time_before(const struct kthreads *before, const struct kthread *t)
{
	for (unsigned int i = 0; i < before->count; i++)
		if (before->thread[i].tid == t->tid)
			return before->thread[i].cpu_time_ns;
	return 0; /* started during the run */
}

static void emit_thread(struct emit *e, const struct kthread *t)
{
	emit_open(e, NULL, '{');
	emit_int(e, "tid", t->tid);
	emit_text(e, "name", t->name);
	emit_text(e, "kind", strncmp(t->name, "irq/", 4) == 0 ? "irq" : "kernel");
	emit_int(e, "cpu", t->cpu);
	emit_int(e, "cpu_time_ns", t->cpu_time_ns);
	emit_close(e, '}');
}

void kthreads_emit_delta(struct emit *e, const struct kthreads *before,
			 const struct kthreads *after)
{
	struct kthread *used = calloc(after->count + 1, sizeof(*used));
	unsigned int left_out = 0;
	int64_t left_out_ns = 0;

	for (unsigned int i = 0; used && i < after->count; i++) {
		used[i] = after->thread[i];
		used[i].cpu_time_ns -= time_before(before, &used[i]);
	}
	if (used)
		qsort(used, after->count, sizeof(*used), by_time);

	emit_open(e, "kernel_threads", '[');
	for (unsigned int i = 0; used && i < after->count; i++) {
		if (used[i].cpu_time_ns <= 0)
			break;
		if (i < MAX_REPORTED) {
			emit_thread(e, &used[i]);
		} else {
			left_out++;
			left_out_ns += used[i].cpu_time_ns;
		}
	}
	emit_close(e, ']');
	emit_int(e, "kernel_threads_left_out", left_out);
	emit_int(e, "kernel_threads_left_out_ns", left_out_ns);
	free(used);
}
