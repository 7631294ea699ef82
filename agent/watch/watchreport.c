/* SPDX-License-Identifier: MIT */
#include "watch/watchreport.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "files/readfile.h"
#include "files/slurp.h"
#include "host/version.h"
#include "machine/pidnamespace.h"
#include "thread/clock.h"
#include "thread/rights.h"
#include "watch/perfregs.h"

#define PARANOID    "/proc/sys/kernel/perf_event_paranoid"
#define VDSO_BYTES  65536
#define STACKS_MORE 32 /* of each program that is executed */
#define LOCKDOWN    "/sys/kernel/security/lockdown"

struct refusal {
	const char *cause, *remedy;
};

/* Of the causes that give EPERM or EACCES the one that shows elsewhere, too. */
static struct refusal not_permitted(bool probe)
{
	char text[256];
	int64_t paranoid = 0;

	if (slurp(LOCKDOWN, text, sizeof(text)) > 0 &&
	    strstr(text, "[confidentiality]"))
		return (struct refusal){ "lockdown", "boot with lockdown=integrity or "
						     "none" };
	if (geteuid() == 0 && rights_in_user_namespace())
		return (struct refusal){ "namespace", PIDNAMESPACE_REMEDY };
	if (geteuid() == 0 && !rights_may_watch(probe))
		return (struct refusal){ "capability",
					 probe ? "give the container CAP_SYS_ADMIN"
					       : "give the container CAP_PERFMON and "
						 "CAP_SYS_PTRACE" };
	if (probe && geteuid() != 0)
		return (struct refusal){ "permission", "run as root or with sudo" };
	if (geteuid() == 0)
		return (struct refusal){ "seccomp",
					 "allow the container perf_event_open, or run "
					 "outside of it" };
	if (slurp_int(PARANOID, &paranoid) == 0 && paranoid > 2)
		return (struct refusal){ "paranoid", "run as root or with sudo, or: "
						     "sysctl "
						     "kernel.perf_event_paranoid=2" };
	return (struct refusal){ "permission", "run as root or with sudo" };
}

static struct refusal explain(int err, bool probe)
{
	/* the kernel has probes: what was to be probed executes another program now */
	if (probe && err == -ENOENT && perfevent_probe_type() >= 0)
		err = -ESTALE;
	switch (err) {
	case -EKEYREJECTED:
		return (struct refusal){ "lockdown", "boot with lockdown=integrity or "
						     "none" };
	case -EACCES:
	case -EPERM:
		return not_permitted(probe);
	case -ENOENT:
	case -EOPNOTSUPP:
	case -ENODEV:
		return (struct refusal){ "unbuilt",
					 "use a kernel with CONFIG_PERF_EVENTS and "
					 "CONFIG_UPROBE_EVENTS" };
	case -ENOSYS:
		return (struct refusal){ "unbuilt",
					 "use a kernel with CONFIG_PERF_EVENTS" };
	case -ESTALE:
		return (struct refusal){ "unmapped", "watch it again" };
	case -EMFILE:
	case -ENFILE:
		return (struct refusal){ "rlimit", "raise the limit: ulimit -n 65536" };
	case WATCHPLACES_NAMESPACE:
		return (struct refusal){ "namespace", PIDNAMESPACE_REMEDY };
	case WATCHPLACES_CPUS:
		return (struct refusal){ "limit", "keep it as it is: no setting permits"
						  " more CPUs" };
	case WATCH_NARROW:
		return (struct refusal){ "limit", "watch a build of 64 bits" };
	case -ENOMEM:
		return (struct refusal){ "memlock", "raise the limit: ulimit -l "
						    "unlimited" };
	default:
		return (struct refusal){ "other", "look into the kernel log" };
	}
}

static void emit_memory(struct watch *w, bool with_name)
{
	char memory[32], name[32];
	char *paths[] = { memory, name };

	snprintf(memory, sizeof(memory), "/proc/%d/maps", w->pid);
	snprintf(name, sizeof(name), "/proc/%d/comm", w->pid);
	readfile(paths, with_name ? 2 : 1, w->out);
}

/* Code of the kernel in the process, of which there is no file: one that may not be read
 * has the same as this one, unless it is of other bits. */
static void emit_vdso(struct watch *w)
{
	static unsigned char code[VDSO_BYTES];
	size_t size = watchproc_vdso(w->pid, code, sizeof(code));

	if (!size && watchproc_abi(w->pid) == watchcalls_own())
		size = watchproc_vdso(getpid(), code, sizeof(code));
	if (!size)
		return;
	emit_begin(w->out, "file");
	emit_text(w->out, "path", "[vdso]");
	emit_text(w->out, "status", "ok");
	emit_base64(w->out, "base64", code, size);
	emit_end(w->out);
}

static const char *reason_of(int err)
{
	if (err == WATCHPLACES_NAMESPACE)
		return PIDNAMESPACE_REASON;
	if (err == WATCH_NARROW)
		return "the kernel has no event of this call for a program of 32 bits";
	return err == WATCHPLACES_CPUS ? "more than 64 CPUs" : strerror(-err);
}

static void emit_kind(struct emit *out, const char *name, int err, bool probe,
		      bool user_only)
{
	const struct refusal why =
		err ? explain(err, probe) : (struct refusal){ "", "" };

	emit_open(out, NULL, '{');
	emit_text(out, "name", name);
	emit_bool(out, "seen", !err);
	emit_bool(out, "user_only", user_only);
	emit_text(out, "cause", why.cause);
	emit_text(out, "reason", err ? reason_of(err) : "");
	emit_remedy(out, why.remedy);
	emit_close(out, '}');
}

void watchreport_begin(struct watch *w)
{
	struct utsname name;

	uname(&name);
	emit_begin(w->out, "watch");
	emit_int(w->out, "schema", CONTRACT_SCHEMA);
	emit_int(w->out, "pid", w->pid);
	emit_text(w->out, "arch", name.machine);
	emit_int(w->out, "from_ns", w->from_ns);
	emit_int(w->out, "stack_bytes", PERFREGS_MASK ? PERFEVENT_STACK_BYTES : 0);
	emit_open(w->out, "events", '[');
	for (unsigned int i = 0; i < w->kinds; i++)
		emit_kind(w->out, w->kind[i].name, w->refused[i], w->kind[i].path,
			  w->kind[i].user_only);
	emit_kind(w->out, "timeline",
		  w->flow.err              ? w->flow.err
		  : w->flow.without_wakers ? WATCHPLACES_NAMESPACE
					   : 0,
		  false, false);
	emit_kind(w->out, "by_cpu", w->places.err, false, false);
	emit_close(w->out, ']');
	emit_end(w->out);
	emit_vdso(w);
	emit_memory(w, false);
}

struct perfevent *watched_events(const struct watch *w, struct watched *t,
				 unsigned int kind, unsigned int *count)
{
	const bool of_cpu = t->of_cpu && perfevent_can_be_of_cpu(&w->kind[kind]);

	*count = of_cpu ? w->places.cpus : 1;
	return of_cpu ? &t->of_cpu[kind * w->places.cpus] : &t->event[kind];
}

static int64_t count_of(const struct watch *w, struct watched *t, unsigned int kind)
{
	unsigned int events;
	const struct perfevent *e = watched_events(w, t, kind, &events);
	int64_t sum = 0;

	for (unsigned int i = 0; i < events && sum >= 0; i++) {
		const int64_t count = perfevent_count(&e[i]);

		sum = count < 0 ? -1 : sum + count;
	}
	return sum;
}

/* Registers and addresses have all 64 bits: in hexadecimal, and in base64. */
static void emit_hex(struct emit *out, const char *key, uint64_t value)
{
	char text[17];
	char *digit = text + sizeof(text) - 1;

	*digit = '\0';
	do {
		*--digit = "0123456789abcdef"[value & 15];
	} while (value >>= 4);
	emit_text(out, key, digit);
}

void watchreport_sample(struct watch *w, const struct watched *t, unsigned int kind,
			const struct perfsample *sample,
			const struct timeline_record *call)
{
	emit_begin(w->out, "watch_sample");
	emit_text(w->out, "event", w->kind[kind].name);
	emit_int(w->out, "tid", t->tid);
	emit_int(w->out, "t_ns", sample->t_ns);
	emit_hex(w->out, "address", sample->address);
	emit_text(w->out, "call", call->call);
	emit_hex(w->out, "key", call->futex.word ? call->futex.word : call->key);
	emit_int(w->out, "abi", (int64_t)sample->abi);
	emit_base64(w->out, "regs", sample->regs, sample->regs_bytes);
	emit_base64(w->out, "stack", sample->stack, sample->stack_bytes);
	emit_end(w->out);
}

/* Not inlined: of each of its many calls there would be a copy. */
static void __attribute__((noinline)) emit_timed(struct emit *out, const char *key,
						 const struct timed *timed)
{
	emit_open(out, key, '{');
	emit_int(out, "count", timed->count);
	emit_int(out, "total_ns", timed->total_ns);
	emit_int(out, "worst_ns", timed->worst_ns);
	emit_int(out, "worst_at_ns", timed->worst_at_ns);
	emit_text(out, "worst_in", timed->worst_in);
	emit_close(out, '}');
}

static void emit_settable(struct emit *out, const struct timeline_settable *s)
{
	emit_open(out, "settable", '{');
	emit_int(out, "waits", s->waits);
	emit_int(out, "expired", s->expired);
	emit_close(out, '}');
}

static const struct timed *timed_named(const struct timeline *t, const char *name)
{
	for (unsigned int i = 0; i < TIMED_KINDS; i++)
		if (strcmp(timeline_kind_names[i], name) == 0)
			return &t->timed[i];
	return NULL;
}

static void emit_party(struct emit *out, const char *key,
		       const struct timeline_party *party)
{
	emit_open(out, key, '{');
	emit_int(out, "tid", party->tid);
	emit_text(out, "name", party->name);
	emit_int(out, "priority", party->priority);
	emit_close(out, '}');
}

static void emit_wakers(struct emit *out, const struct timeline *t)
{
	emit_open(out, "wakers", '[');
	for (unsigned int i = 0; i < t->wakers; i++) {
		emit_open(out, NULL, '{');
		emit_party(out, "by", &t->waker[i].by);
		emit_bool(out, "softirq", t->waker[i].softirq);
		emit_hex(out, "word", t->waker[i].word);
		emit_int(out, "count", t->waker[i].count);
		emit_close(out, '}');
	}
	emit_close(out, ']');
	emit_int(out, "other_wakers", t->other_wakers);
	emit_open(out, "inversions", '[');
	for (unsigned int i = 0; i < t->inversions; i++) {
		emit_open(out, NULL, '{');
		emit_party(out, "owner", &t->inversion[i].owner);
		emit_party(out, "by", &t->inversion[i].by);
		emit_hex(out, "word", t->inversion[i].word);
		emit_timed(out, "times", &t->inversion[i].waited);
		emit_close(out, '}');
	}
	emit_close(out, ']');
}

static void emit_calls(struct emit *out, struct timeline *t)
{
	emit_open(out, "calls", '[');
	for (unsigned int i = 0; i < t->calls; i++) {
		struct timeline_call *c = &t->call[i];

		timeline_settle(c);
		emit_open(out, NULL, '{');
		emit_text(out, "name", c->name);
		emit_int(out, "number", c->number);
		emit_bool(out, "memory", c->kind == TIMED_MEMORY_CALL);
		emit_bool(out, "idle", c->idle);
		emit_hex(out, "key", c->key);
		emit_int(out, "harmless", c->harmless);
		emit_int(out, "undecided", c->undecided);
		emit_timed(out, "times", &c->times);
		emit_timed(out, "slept", &c->slept);
		emit_timed(out, "held", &c->held);
		emit_settable(out, &c->settable);
		emit_close(out, '}');
	}
	emit_close(out, ']');
	emit_int(out, "other_calls", t->other_calls);
	emit_int(out, "slept_elsewhere_ns", t->slept_elsewhere_ns);
}

static void emit_doing(struct emit *out, const struct timeline_doing *d)
{
	emit_open(out, "meanwhile", '{');
	emit_int(out, "ran_ns", d->ran_ns);
	emit_int(out, "aside_ns", d->aside_ns);
	emit_int(out, "slept_ns", d->slept_ns);
	emit_text(out, "slept_in", d->slept_in);
	emit_close(out, '}');
}

static void emit_words(struct emit *out, const struct timeline *t)
{
	emit_open(out, "words", '[');
	for (unsigned int i = 0; i < t->words; i++) {
		const struct timeline_word *word = &t->word[i];

		emit_open(out, NULL, '{');
		emit_hex(out, "word", word->futex.word);
		emit_int(out, "value", word->futex.value);
		emit_int(out, "command", word->futex.command);
		emit_bool(out, "values_differ", word->values_differ);
		emit_int(out, "wakes", word->wakes);
		emit_int(out, "looks", word->looks);
		emit_int(out, "free", word->free);
		emit_timed(out, "times", &word->times);
		emit_settable(out, &word->settable);
		if (word->has_waker)
			emit_party(out, "waker", &word->waker);
		if (word->has_waker && word->meanwhile.known)
			emit_doing(out, &word->meanwhile);
		emit_close(out, '}');
	}
	emit_close(out, ']');
	emit_int(out, "other_words", t->other_words);
}

/* Its memory and its name first, as of `looked_ns`: of another program, if one was
 * executed since. */
void watchreport_executed(struct watch *w, struct watched *t,
			  const struct perfsample *sample)
{
	/* its events have ended if the program has rights of its own */
	struct pollfd events = { .fd = t->ring.fd };

	w->executed |= t->tid != w->pid || poll(&events, 1, 0) > 0;
	w->stacks_each += STACKS_MORE;
	emit_memory(w, true);
	emit_begin(w->out, "executed");
	emit_int(w->out, "tid", t->tid);
	emit_text(w->out, "name", sample->program);
	emit_int(w->out, "t_ns", sample->t_ns);
	emit_int(w->out, "looked_ns", clock_now_ns());
	emit_end(w->out);
}

void watchreport_thread(struct watch *w, struct watched *t)
{
	const struct timed *timed;

	w->seen++;
	emit_begin(w->out, "watched");
	emit_int(w->out, "tid", t->tid);
	emit_text(w->out, "name", t->name);
	emit_int(w->out, "from_ns", t->from_ns);
	emit_int(w->out, "to_ns", clock_now_ns());
	emit_bool(w->out, "ended", !t->alive || w->gone);
	emit_int(w->out, "samples_lost", (int64_t)(t->ring.lost + t->probes.lost));
	emit_int(w->out, "records_lost", (int64_t)t->flow.ring.lost);
	emit_open(w->out, "events", '{');
	for (unsigned int i = 0; i < w->kinds; i++) {
		const int64_t count = count_of(w, t, i);

		if (count < 0)
			continue;
		emit_open(w->out, w->kind[i].name, '{');
		emit_int(w->out, "count", count);
		emit_int(w->out, "sampled", (int64_t)t->sampled[i]);
		timed = timed_named(&t->line, w->kind[i].name);
		if (timed && timed->count)
			emit_timed(w->out, "times", timed);
		emit_close(w->out, '}');
	}
	emit_close(w->out, '}');
	emit_calls(w->out, &t->line);
	emit_words(w->out, &t->line);
	emit_wakers(w->out, &t->line);
	emit_timed(w->out, "kernel_waits", &t->line.timed[TIMED_KERNEL_WAIT]);
	emit_end(w->out);
}

int watchreport_end(struct watch *w, const char *stopped)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	emit_begin(w->out, "watch_end");
	emit_int(w->out, "to_ns", w->to_ns);
	emit_text(w->out, "stopped", w->gone ? "ended" : stopped ? stopped : "");
	emit_int(w->out, "threads", w->seen);
	emit_int(w->out, "vanished", w->vanished);
	emit_int(w->out, "not_watched", w->not_watched);
	emit_int(w->out, "stacks", (int64_t)w->stacks);
	emit_int(w->out, "samples_lost", w->samples_lost);
	emit_int(w->out, "own_events", w->places.elsewhere);
	emit_int(w->out, "opening_ns", w->opening_ns);
	emit_int(w->out, "records_lost", w->flow.lost);
	emit_int(w->out, "agent_cpu_ns", timespec_ns(used));
	emit_open(w->out, "costs", '{');
	for (size_t i = 0; i < sizeof(w->cost) / sizeof(w->cost[0]); i++) {
		emit_open(w->out, w->cost[i].name, '{');
		emit_int(w->out, "plain_ns", w->cost[i].plain_ns);
		emit_int(w->out, "counted_ns", w->cost[i].counted_ns);
		emit_int(w->out, "copied_ns", w->cost[i].copied_ns);
		emit_close(w->out, '}');
	}
	emit_close(w->out, '}');
	return emit_end(w->out);
}
