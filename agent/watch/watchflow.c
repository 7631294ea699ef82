/* SPDX-License-Identifier: MIT */
#include "watch/watchflow.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/slurp.h"
#include "machine/pidnamespace.h"
#include "machine/taskfile.h"
#include "machine/tracefs.h"
#include "watch/descriptors.h"
#include "watch/flowevents.h"
#include "watch/perfregs.h"
#include "watch/watchcalls.h"

#define PENDING    32768 /* records between two looks into the rings */
#define OF_CPUS    (-1)  /* whose records were lost: threads that CPUs record */
#define OF_ALL     (-2)
#define CPU_BYTES  (1 << 18) /* of the ring of a CPU; 2^n */
#define FEW_CPUS   8
#define MANY_BYTES (1 << 16)
#define ONLINE     "/sys/devices/system/cpu/online"
#define FORMAT     4096

static int read_event(const char *tracefs, const char *event, uint64_t *number,
		      char format[FORMAT])
{
	char path[TRACEFS_PATH + 64];
	int64_t id;
	long n;
	int err;

	snprintf(path, sizeof(path), "%s/events/%s/id", tracefs, event);
	err = slurp_int(path, &id);
	if (err)
		return err;
	*number = (uint64_t)id;
	snprintf(path, sizeof(path), "%s/events/%s/format", tracefs, event);
	n = slurp(path, format, FORMAT);
	return n < 0 ? (int)n : 0;
}

static int read_forms(struct watchflow *f, const char *tracefs)
{
	char format[FORMAT];
	int err = read_event(tracefs, "sched/sched_switch", &f->config[FLOW_SWITCH],
			     format);

	err = err ? err : watchform_read_switch(&f->form, format);
	err = err ? err : read_event(tracefs, "sched/sched_waking", &f->waking, format);
	err = err ? err : watchform_read_waking(&f->form, format);
	err = err ? err
		  : read_event(tracefs, "raw_syscalls/sys_enter",
			       &f->config[FLOW_ENTER], format);
	err = err ? err : watchform_read_calls(&f->form, format);
	err = err ? err
		  : read_event(tracefs, "raw_syscalls/sys_exit", &f->config[FLOW_LEAVE],
			       format);
	return err ? err : watchform_read_results(&f->form, format);
}

/* Of x86-64, and of other architectures in newer kernels. */
static void find_faults(struct watchflow *f, const char *tracefs)
{
	char format[FORMAT];

	if (read_event(tracefs, "exceptions/page_fault_user", &f->config[FLOW_FAULT],
		       format) ||
	    read_event(tracefs, "exceptions/page_fault_kernel",
		       &f->config[FLOW_KERNEL_FAULT], format))
		f->config[FLOW_FAULT] = 0;
}

static int find_cpus(struct watchflow *f)
{
	char text[CPULIST_TEXT_MAX];

	if (slurp(ONLINE, text, sizeof(text)) < 0)
		return -ENOENT;
	text[strcspn(text, "\n")] = '\0';
	if (cpulist_parse(text, &f->online))
		return -EINVAL;
	for (int cpu = cpulist_next(&f->online, 0); cpu >= 0;
	     cpu = cpulist_next(&f->online, (unsigned int)cpu + 1))
		f->cpu[f->cpus++] = cpu;
	return 0;
}

void watchflow_make(struct watch *w, const char *tracefs, int err)
{
	struct watchflow *f = &w->flow;

	f->without_wakers = !pidnamespace_is_first();
	f->err = err ? err : read_forms(f, tracefs);
	if (!f->err)
		find_faults(f, tracefs);
	if (!f->err)
		f->err = find_cpus(f);
	memset(f->cpu_fd, -1, sizeof(f->cpu_fd));
	if (f->err)
		return;
	f->process.pid = w->pid;
	if (!watchcalls_filter_timed(f->filter, sizeof(f->filter), w->abi))
		f->err = -E2BIG;
	f->pending = malloc(PENDING * sizeof(*f->pending));
	if (!f->pending)
		f->err = -ENOMEM;
}

void watchflow_begin(struct watch *w)
{
	struct watchflow *f = &w->flow;
	const size_t bytes = f->cpus <= FEW_CPUS ? CPU_BYTES : MANY_BYTES;

	f->agent_tid = getpid();
	for (unsigned int i = 0; !f->err && i < f->cpus; i++) {
		f->err = perfring_make(&f->cpu_ring[i], f->cpu[i], bytes);
		if (!f->err && flowevents_have_faults_on_cpus(f))
			f->err = perfring_make(&f->fault_ring[i], f->cpu[i], bytes);
		if (!f->err && !f->without_wakers)
			f->err = flowevents_open_waking(f, i);
	}
	if (f->err)
		watchflow_end(w);
}

void watchflow_attach(struct watch *w, struct watched *t)
{
	const int err = w->flow.err ? w->flow.err : flowevents_open(w, t);

	if (!err)
		return;
	watchflow_detach(w, t);
	if (err != -ESRCH && !w->flow.err) {
		w->flow.err = err;
		watchflow_end(w);
	}
}

void watchflow_detach(const struct watch *w, struct watched *t)
{
	flowevents_close(&t->flow, w->flow.cpus);
}

void watchflow_end(struct watch *w)
{
	struct watchflow *f = &w->flow;

	for (unsigned int i = 0; i < f->cpus; i++) {
		f->lost += (int64_t)(f->cpu_ring[i].lost + f->fault_ring[i].lost);
		perfring_close(&f->cpu_ring[i]);
		perfring_close(&f->fault_ring[i]);
		if (f->cpu_fd[i] >= 0)
			perfevent_end(f->cpu_fd[i]);
		f->cpu_fd[i] = -1;
	}
	free(f->pending);
	f->pending = NULL;
}

/* --- who wakes ------------------------------------------------------------------------ */

static struct watched *find(struct watch *w, int tid)
{
	for (unsigned int i = 0; i < w->threads; i++)
		if (w->thread[i]->tid == tid)
			return w->thread[i];
	return NULL;
}

/* Who it is, as it is now: it was a moment ago. */
static void learn_of(struct timeline_party *party)
{
	char path[64], text[1024];
	struct taskstat stat;
	size_t size;

	party->priority = INT32_MIN;
	snprintf(path, sizeof(path), "/proc/%d/stat", party->tid);
	if (party->tid == 0)
		snprintf(party->name, sizeof(party->name), "idle");
	else if (slurp(path, text, sizeof(text)) > 0 &&
		 taskstat_parse(text, &stat) == 0) {
		size = stat.name_size < TIMELINE_NAME - 1 ? stat.name_size
							  : TIMELINE_NAME - 1;
		memcpy(party->name, stat.name, size);
		party->name[size] = '\0';
		party->priority = stat.effective + TIMELINE_LOWEST;
	}
	if (party->tid == 0)
		party->priority = INT32_MAX;
}

static void name_waker(struct watch *w, struct timeline_record *r,
		       const struct watched *waker)
{
	struct watchflow *f = &w->flow;
	struct timeline_party *known =
		&f->party[(unsigned int)r->other.tid % WATCHFLOW_PARTIES];

	if (waker && waker->line.known) {
		r->other.priority = waker->line.priority;
		memcpy(r->other.name, waker->name, sizeof(r->other.name) - 1);
		return;
	}
	if (known->tid != r->other.tid || r->t_ns - f->learnt_ns > WATCHFLOW_FRESH_NS) {
		if (r->t_ns - f->learnt_ns > WATCHFLOW_FRESH_NS) {
			memset(f->party, 0, sizeof(f->party));
			f->learnt_ns = r->t_ns;
		}
		known->tid = r->other.tid;
		learn_of(known);
	}
	r->other = *known;
}

/* --- records, in order of time ------------------------------------------------------ */

static struct timeline_record *room(struct watchflow *f)
{
	if (f->count < PENDING - 1)
		return &f->pending[f->count];
	f->lost++;
	f->full = true;
	return NULL;
}

/* A process, and the stack of one of its threads. */
struct stack_copy {
	struct watchproc *process;
	const struct perfsample *sample;
	uint64_t pointer;
};

static bool copy_of_stack(void *of, uint64_t address, void *to, size_t size)
{
	const struct stack_copy *s = of;
	const uint64_t at = address - s->pointer;

	if (address < s->pointer || at + size > s->sample->stack_bytes)
		return watchproc_copy(s->process, address, to, size);
	memcpy(to, s->sample->stack + at, size);
	return true;
}

static enum watchcalls_descriptor descriptor(void *of, int fd)
{
	const struct stack_copy *s = of;

	return watchproc_descriptor(s->process, fd);
}

/* The mode is a fact of the call: a program of 32 bits may run under a kernel of 64, and
 * on x86 one of 64 may call as one of 32 does. */
static bool is_narrow(struct watchflow *f, const struct watchform_record *r)
{
	if (r->mode == PERF_SAMPLE_REGS_ABI_NONE)
		return f->form.word == 4;
	return r->mode == PERF_SAMPLE_REGS_ABI_32 ||
	       (watchcalls_own() == CALLS_X86_64 &&
		watchproc_is_int80(&f->process, r->ip));
}

static bool read_call(struct watchflow *f, const struct watchform_record *r,
		      struct stack_copy *stack, struct timeline_record *out)
{
	uint64_t args[WATCHCALLS_ARGS] = { 0 };
	const long number = watchform_call(&f->form, r, args);
	const struct watchcalls_process process = {
		stack, descriptor, stack->sample ? copy_of_stack : NULL,
		watchcalls_of_call(is_narrow(f, r), number)
	};

	return watchcalls_read(number, args, &process, out);
}

bool watchflow_call(struct watchflow *f, const struct watchform_record *r,
		    struct timeline_record *out)
{
	struct stack_copy none = { .process = &f->process };

	return read_call(f, r, &none, out);
}

bool watchflow_sampled_call(struct watchflow *f, const struct perfsample *sample,
			    struct timeline_record *out)
{
	struct watchform_record r = { .raw = sample->raw,
				      .raw_bytes = sample->raw_bytes,
				      .mode = sample->abi };
	struct stack_copy stack = { &f->process, sample, 0 };

	if (sample->regs_bytes >= (PERFREGS_IP + 1) * sizeof(uint64_t))
		memcpy(&r.ip, sample->regs + PERFREGS_IP * sizeof(uint64_t),
		       sizeof(uint64_t));
	if (sample->regs_bytes < (PERFREGS_SP + 1) * sizeof(uint64_t))
		stack.sample = NULL;
	else
		memcpy(&stack.pointer, sample->regs + PERFREGS_SP * sizeof(uint64_t),
		       sizeof(uint64_t));
	if (!read_call(f, &r, &stack, out))
		return false;
	descriptors_learn(&f->descriptors, out);
	return true;
}

static bool read_record(struct watchflow *f, const struct watched *t,
			const struct watchform_record *r, unsigned int event,
			struct timeline_record *out)
{
	*out = (struct timeline_record){ .t_ns = r->t_ns, .tid = t->tid };
	switch (event) {
	case FLOW_SWITCH:
		/* of a CPU, the thread that gets it has the record, too */
		out->what = TIMELINE_IN;
		return r->tid == t->tid ? watchform_switch(&f->form, r, out) : true;
	case FLOW_ENTER:
		return watchflow_call(f, r, out);
	case FLOW_LEAVE:
		out->what = TIMELINE_RETURN;
		out->fd = watchform_result(&f->form, r) + 1;
		return true;
	default:
		out->what = TIMELINE_FAULT;
		return event < WATCHFLOW_EVENTS;
	}
}

static unsigned int event_with(const struct watchflow_event *of, unsigned int count,
			       uint64_t id)
{
	unsigned int i = 0;

	while (i < count && (of[i].fd < 0 || of[i].id != id))
		i++;
	return i < count ? i : WATCHFLOW_EVENTS;
}

static bool read_own(struct watchflow *f, const struct watched *t,
		     const struct watchform_record *r, struct timeline_record *out)
{
	if (!r->is_switch)
		return read_record(f, t, r, event_with(t->flow.own, FLOW_OWN, r->id),
				   out);
	*out = (struct timeline_record){ .t_ns = r->t_ns,
					 .tid = t->tid,
					 .what = TIMELINE_IN };
	return r->switched_in;
}

static bool read_of_cpu(struct watch *w, const struct watchform_record *r,
			unsigned int cpu, struct timeline_record *out)
{
	for (unsigned int i = 0; !r->is_switch && i < w->threads; i++) {
		const struct watchflow_thread *t = &w->thread[i]->flow;
		unsigned int event = WATCHFLOW_EVENTS;

		if (t->on_cpu)
			event = event_with(t->on_cpu + cpu * WATCHFLOW_EVENTS,
					   WATCHFLOW_EVENTS, r->id);
		if (event < WATCHFLOW_EVENTS)
			return read_record(&w->flow, w->thread[i], r, event, out);
	}
	/* what is left of a thread that has ended is no wake-up */
	return watchform_number(r) == w->flow.waking &&
	       watchform_waking(&w->flow.form, r, out);
}

static bool add(struct watchflow *f, int tid, int64_t t_ns, enum timeline_what what)
{
	struct timeline_record *out = f->err ? NULL : room(f);

	if (!out)
		return false;
	*out = (struct timeline_record){ .t_ns = t_ns, .tid = tid, .what = what };
	f->count++;
	return true;
}

/* Not by an event of its own: Linux 6.18 damages the samples of two events of one thread
 * that count the same. */
void watchflow_fault(struct watch *w, int tid, int64_t t_ns, bool major)
{
	add(&w->flow, tid, t_ns, major ? TIMELINE_MAJOR : TIMELINE_MINOR);
}

void watchflow_mark(struct watch *w, int tid, int64_t t_ns)
{
	add(&w->flow, tid, t_ns, TIMELINE_MARK);
}

/* The ring is of a thread, or of a CPU. */
static void take(struct watch *w, struct perfring *ring, struct watched *own,
		 unsigned int cpu)
{
	struct watchflow *f = &w->flow;
	struct watchform_record r;
	struct timeline_record *out;

	while (perfring_next(ring, w->buffer)) {
		if (!watchform_parse(w->buffer, &r))
			continue;
		if (ring->lost != ring->noted &&
		    add(f, own ? own->tid : OF_CPUS, r.t_ns - 1, TIMELINE_LOST))
			ring->noted = ring->lost;
		out = room(f);
		if (out &&
		    (own ? read_own(f, own, &r, out) : read_of_cpu(w, &r, cpu, out)))
			f->count++;
	}
}

static int earlier(const void *a, const void *b)
{
	const struct timeline_record *one = a, *other = b;

	return (one->t_ns > other->t_ns) - (one->t_ns < other->t_ns);
}

static void forget(struct watch *w, const struct timeline_record *r)
{
	for (unsigned int i = 0; i < w->threads; i++)
		if (r->tid == OF_ALL || r->tid == w->thread[i]->tid ||
		    (r->tid == OF_CPUS && w->thread[i]->flow.on_cpu))
			timeline_add(&w->thread[i]->line, r, NULL);
}

static void give(struct watch *w, struct timeline_record *r)
{
	struct watched *t = find(w, r->tid), *waker = NULL;

	if (r->what == TIMELINE_LOST)
		forget(w, r);
	if (!t || r->what == TIMELINE_LOST)
		return;
	descriptors_follow(&w->flow.descriptors, &t->flow.made, r);
	if (r->what == TIMELINE_WAKE) {
		waker = find(w, r->other.tid);
		r->by_agent =
			r->context == IN_THREAD && r->other.tid == w->flow.agent_tid;
		name_waker(w, r, waker);
	}
	timeline_add(&t->line, r, waker ? &waker->line : NULL);
}

/* A semaphore that is a lock may be taken most of the time; one of a queue may not. */
static void look_at_words(struct watch *w, struct timeline *t)
{
	for (unsigned int i = 0; t->sees_wakers_ns && i < t->words; i++) {
		struct timeline_word *word = &t->word[i];
		uint32_t value;

		if ((t->call_ns && t->in.futex.word == word->futex.word) ||
		    !watchproc_copy(&w->flow.process, word->futex.word, &value,
				    sizeof(value)))
			continue;
		word->looks++;
		word->free += value == 1;
	}
}

void watchflow_take(struct watch *w, int64_t until_ns)
{
	struct watchflow *f = &w->flow;
	unsigned int done = 0;

	if (f->err)
		return;
	watchproc_forget(&f->process);
	for (unsigned int i = 0; i < w->threads; i++)
		take(w, &w->thread[i]->flow.ring, w->thread[i], 0);
	for (unsigned int i = 0; i < f->cpus; i++) {
		take(w, &f->cpu_ring[i], NULL, i);
		take(w, &f->fault_ring[i], NULL, i);
	}
	qsort(f->pending, f->count, sizeof(*f->pending), earlier);
	if (f->full) { /* the last place is kept for this */
		f->pending[f->count] = (struct timeline_record){
			.t_ns = f->pending[f->count - 1].t_ns + 1,
			.tid = OF_ALL,
			.what = TIMELINE_LOST
		};
		f->count++;
		f->full = false;
	}
	descriptors_look_back(&f->descriptors, f->pending, f->count);
	/* what is later may still have something before it, in a ring read earlier */
	while (done < f->count && f->pending[done].t_ns < until_ns)
		give(w, &f->pending[done++]);
	f->count -= done;
	memmove(f->pending, f->pending + done, f->count * sizeof(*f->pending));
	for (unsigned int i = 0; i < w->threads; i++)
		look_at_words(w, &w->thread[i]->line);
	flowevents_look_at_policies(w);
}
