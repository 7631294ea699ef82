/* SPDX-License-Identifier: MIT */
#include "watch/flowevents.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "thread/clock.h"

#define RING_SHARE 4 /* of what a thread's stacks have */

static int join(struct perfring *ring, int fd, size_t bytes)
{
	struct perfevent e = { .sampler_fd = fd };

	return perfring_join(ring, &e, bytes);
}

int flowevents_open_waking(struct watchflow *f, unsigned int i)
{
	if (f->cpu_fd[i] >= 0)
		perfevent_end(f->cpu_fd[i]);
	f->cpu_fd[i] = perfevent_open_flow(PERF_TYPE_TRACEPOINT, f->waking, -1,
					   f->cpu[i], PERFEVENT_NO_MORE);
	return f->cpu_fd[i] < 0 ? f->cpu_fd[i] : join(&f->cpu_ring[i], f->cpu_fd[i], 0);
}

static const char *filter_of(const struct watch *w, unsigned int i)
{
	return i == FLOW_ENTER || i == FLOW_LEAVE ? w->flow.filter : NULL;
}

static int begin_event(struct watchflow_event *e, struct perfring *ring, size_t bytes,
		       const char *filter)
{
	int err = 0;

	if (filter && ioctl(e->fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0)
		return -errno;
	if (ioctl(e->fd, PERF_EVENT_IOC_ID, &e->id) < 0)
		return -errno;
	err = join(ring, e->fd, bytes);
	if (!err && ioctl(e->fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		err = -errno;
	return err;
}

static enum perfevent_more more_of(unsigned int i)
{
	return i == FLOW_SWITCH  ? PERFEVENT_SWITCHES
	       : i == FLOW_ENTER ? PERFEVENT_MODE
				 : PERFEVENT_NO_MORE;
}

static int open_own(struct watch *w, struct watched *t, unsigned int i)
{
	const bool tracepoint = i < FLOW_FAULT;
	struct watchflow_event *e = &t->flow.own[i];
	const int fd = perfevent_open_flow(
		tracepoint ? PERF_TYPE_TRACEPOINT : PERF_TYPE_SOFTWARE,
		tracepoint ? w->flow.config[i] : PERF_COUNT_SW_PAGE_FAULTS, t->tid, -1,
		more_of(i));

	if (fd < 0)
		return fd;
	e->fd = fd;
	return begin_event(e, &t->flow.ring, w->ring_bytes / RING_SHARE,
			   filter_of(w, i));
}

static int open_on_cpu(struct watch *w, const struct watched *t, unsigned int i,
		       unsigned int cpu)
{
	struct watchflow_event *e = &t->flow.on_cpu[cpu * WATCHFLOW_EVENTS + i];
	const bool fault = i >= FLOW_FAULT;
	char filter[PERFEVENT_FILTER];
	int err;

	if (i == FLOW_SWITCH)
		snprintf(filter, sizeof(filter), "prev_pid == %d || next_pid == %d",
			 t->tid, t->tid);
	else if ((err = perfevent_filter_thread(filter, sizeof(filter), t->tid,
						filter_of(w, i))))
		return err;
	e->fd = perfevent_open_flow(
		PERF_TYPE_TRACEPOINT, w->flow.config[i], -1, w->flow.cpu[cpu],
		i == FLOW_ENTER ? PERFEVENT_MODE : PERFEVENT_NO_MORE);
	if (e->fd < 0)
		return e->fd;
	return begin_event(e, fault ? &w->flow.fault_ring[cpu] : &w->flow.cpu_ring[cpu],
			   0, filter);
}

bool flowevents_have_faults_on_cpus(const struct watchflow *f)
{
	return f->config[FLOW_FAULT];
}

static int open_on_cpus(struct watch *w, struct watched *t)
{
	const size_t count = (size_t)w->flow.cpus * WATCHFLOW_EVENTS;
	const unsigned int each = flowevents_have_faults_on_cpus(&w->flow)
					  ? WATCHFLOW_EVENTS
					  : FLOW_FAULT;
	int err = 0;

	t->flow.on_cpu = malloc(count * sizeof(*t->flow.on_cpu));
	if (!t->flow.on_cpu)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		t->flow.on_cpu[i] = (struct watchflow_event){ .fd = -1 };
	for (unsigned int cpu = 0; cpu < w->flow.cpus; cpu++)
		for (unsigned int i = 0; !err && i < each; i++)
			err = open_on_cpu(w, t, i, cpu);
	return err;
}

static void close_on_cpus(struct watchflow_thread *t, unsigned int cpus)
{
	for (unsigned int i = 0; t->on_cpu && i < cpus * WATCHFLOW_EVENTS; i++)
		if (t->on_cpu[i].fd >= 0)
			perfevent_end(t->on_cpu[i].fd);
	free(t->on_cpu);
	t->on_cpu = NULL;
}

void flowevents_init(struct watchflow_thread *t)
{
	for (unsigned int i = 0; i < FLOW_OWN; i++)
		t->own[i].fd = -1;
}

int flowevents_open(struct watch *w, struct watched *t)
{
	unsigned int i = 0;
	int err = 0;

	if (t->on_cpus && open_on_cpus(w, t))
		close_on_cpus(&t->flow, w->flow.cpus);
	if (t->flow.on_cpu)
		i = flowevents_have_faults_on_cpus(&w->flow) ? FLOW_OWN : FLOW_FAULT;
	for (; !err && i < FLOW_OWN; i++)
		err = open_own(w, t, i);
	return err;
}

void flowevents_close(struct watchflow_thread *t, unsigned int cpus)
{
	close_on_cpus(t, cpus);
	perfring_close(&t->ring);
	for (unsigned int i = 0; i < FLOW_OWN; i++)
		if (t->own[i].fd >= 0)
			perfevent_end(t->own[i].fd);
	flowevents_init(t);
}

static void compare(struct watchflow *f, const char *filter)
{
	for (unsigned int i = 0; !f->without_wakers && i < f->cpus; i++) {
		if (f->compares && flowevents_open_waking(f, i))
			continue;
		if (*filter &&
		    ioctl(f->cpu_fd[i], PERF_EVENT_IOC_SET_FILTER, filter) == 0)
			ioctl(f->cpu_fd[i], PERF_EVENT_IOC_ENABLE, 0);
	}
	f->compares = *filter;
}

/* --- wake-ups: of real-time threads alone ------------------------------------------ */

bool flowevents_is_real_time(int tid)
{
	/* musl has no sched_getscheduler() */
	const long policy = syscall(SYS_sched_getscheduler, tid);

	return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

#define WAKING_BYTES 48 /* of the filter, for each thread */

/* 0: wake-ups are not looked at. */
static int64_t seen_ns(const struct watch *w)
{
	return w->flow.without_wakers ? 0 : clock_now_ns();
}

/* The kernel compares each wake-up of the machine with these threads. */
void flowevents_look_at_policies(struct watch *w)
{
	char filter[WATCH_MAX_THREADS * WAKING_BYTES] = "";
	size_t used = 0;
	bool changed = false;

	for (unsigned int i = 0; i < w->threads; i++) {
		struct watched *t = w->thread[i];
		const bool real_time = t->alive && flowevents_is_real_time(t->tid);

		changed |= real_time != t->flow.real_time;
		t->flow.real_time = real_time;
		if (real_time)
			used += (size_t)snprintf(
				filter + used, sizeof(filter) - used, "%s(pid == %d%s)",
				used ? " || " : "", t->tid,
				t->flow.on_cpu ? FLOW_NOT_IN_INTERRUPT : "");
	}
	if (!changed)
		return;
	compare(&w->flow, filter);
	for (unsigned int i = 0; i < w->threads; i++)
		w->thread[i]->line.sees_wakers_ns =
			w->thread[i]->flow.real_time ? seen_ns(w) : 0;
}
