/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "histfile.h"
#include "outside.h"
#include "outsidetime.h"
#include "state.h"
#include "wakeuptimes.h"

#include "../agent/measure/hist.h"

#define MAX_THREADS 256
#define NS_PER_S    INT64_C(1000000000)
#define READINGS    64 /* that an event may be behind the one that is sent */
/* A CPU's own time and the guest's clock differ by less. */
#define STALE_NS INT64_C(100000)

/* agent/measure/sampler.c names its threads */
#define OF_MEASURING "rtscope/"
#define OF_STIMULUS  "rtscope-ev/"

struct watched {
	uint64_t task; /* its address; 0: it has ended */
	uint32_t id;
	unsigned int cpu; /* where it ran last */
	bool is_stimulus;
	int64_t read_ns;              /* its latest reading of the clock */
	int64_t earlier_ns[READINGS]; /* with that one, by number */
	unsigned int readings;        /* their number; */
	unsigned int known;           /* those of its stimulus at its own latest one */
	struct watched *stimulus;     /* that sends its events */
	uint64_t call, slept_in;      /* the place in the program of its latest call, */
	uint64_t loop;                /* and of those that are measured; 0: not known */
	bool calls;                   /* the kernel, since it was switched to */
	bool reads;                   /* the clock without the kernel */
	bool asked;                   /* the kernel, since it has read the clock */
	bool is_open;                 /* its wake-up has ended, and is not taken */
	struct wakeup_times times;    /* of the wake-up in progress, or the last one */
	struct hist *part;            /* of each; NULL: it has marked nothing */
	uint64_t checked, wrong, most_wrong_ns;
};

static struct {
	struct watched thread[MAX_THREADS];
	unsigned int count;
	unsigned int awake; /* how many have been woken, and have not read the clock */
	struct {
		struct watched *current;
		int64_t interrupt_ns; /* where it last began to handle its timers */
	} cpu[CPUS_MAX];
	int64_t tolerance_ns;
	bool measures;
} parts;

void parts_init(const struct options *options, const struct arch *arch)
{
	uint64_t hz = options->time[TIME_HZ];

	outside.options = options;
	outside.arch = arch;
	/* both readings of the counter are rounded, and the kernel's conversion is */
	parts.tolerance_ns = 2 * (int64_t)((NS_PER_S + hz - 1) / hz) + 2;
}

const char *parts_registers(void)
{
	return outside_registers();
}

unsigned int parts_hook_at(uint64_t address)
{
	static const enum options_hook wanted[] = { HOOK_WAKE,   HOOK_SWITCHED,
						    HOOK_RENAME, HOOK_SLEEPER,
						    HOOK_EXIT,   HOOK_CALL };

	for (unsigned int i = 0; i < OPTIONS_PLACES; i++)
		if (address == outside.options->parts[i])
			return 1 + OPTIONS_HOOKS + i;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (address == outside.options->hook[wanted[i]])
			return 1 + wanted[i];
	return 0;
}

/* --- what is taken of a wake-up -------------------------------------------------------- */

static void take(struct watched *t)
{
	int64_t took_ns[PARTS];

	wakeuptimes_parts(&t->times, took_ns);
	for (unsigned int i = 0; i < PARTS; i++)
		hist_add(&t->part[i], took_ns[i]);
}

/* A wake-up that has ended, of the loop that is measured. */
static bool is_whole(const struct watched *t)
{
	const struct wakeup_times *times = &t->times;

	return times->read_ns != NEVER && times->begun_ns != NEVER &&
	       times->latency_ns >= 0;
}

/* It may read the clock again, as long as it calls nothing. */
static void close_wakeup(struct watched *t)
{
	if (t->is_open && t->part && t->slept_in == t->loop && is_whole(t))
		take(t);
	t->is_open = false;
}

/* --- threads -------------------------------------------------------------------------- */

static struct watched *find(uint64_t task)
{
	for (struct watched *t = parts.thread; t < parts.thread + parts.count; t++)
		if (t->task == task)
			return t;
	return NULL;
}

static struct watched **current(void)
{
	return &parts.cpu[cpus_index(cpus.now)].current;
}

static void forget_wakeup(struct watched *t)
{
	close_wakeup(t);
	parts.awake -= t->times.woken_ns != NEVER && t->times.read_ns == NEVER;
	t->times = (struct wakeup_times){ .begun_ns = NEVER,
					  .entered_ns = NEVER,
					  .woken_ns = NEVER,
					  .quit_ns = NEVER,
					  .scheduled_ns = NEVER,
					  .switched_ns = NEVER,
					  .read_ns = NEVER };
	t->calls = false;
}

/* Whether a wake-up may begin: of a thread that sleeps, or is about to. */
static bool may_be_woken(struct watched *t)
{
	if (!t || t->is_stimulus)
		return false;
	if (t->times.read_ns != NEVER) {
		forget_wakeup(t);
		t->slept_in = t->call;
	}
	return t->times.woken_ns == NEVER;
}

static void forget(uint64_t task)
{
	struct watched *t = find(task);

	if (!t)
		return;
	forget_wakeup(t);
	t->task = 0;
	for (unsigned int i = 0; i < CPUS_MAX; i++)
		if (parts.cpu[i].current == t)
			parts.cpu[i].current = NULL;
}

static void at_rename(void)
{
	uint64_t task = outside_argument(0), from = outside_argument(1), word[2];
	char name[sizeof(word)];
	struct watched *t;
	bool measures, sends;

	word[0] = outside_value(from, 8);
	memcpy(name, word, sizeof(word[0]));
	if (memcmp(name, OF_MEASURING, 8) != 0 && memcmp(name, OF_STIMULUS, 8) != 0)
		return;
	word[1] = outside_value(from + 8, 8);
	memcpy(name, word, sizeof(word));
	measures = strncmp(name, OF_MEASURING, strlen(OF_MEASURING)) == 0;
	sends = strncmp(name, OF_STIMULUS, strlen(OF_STIMULUS)) == 0;
	if (!(measures || sends) || parts.count == MAX_THREADS ||
	    !outside_check(HOOK_RENAME, outside_is_task(task)))
		return;
	forget(task);
	t = &parts.thread[parts.count++];
	t->task = task;
	t->id = (uint32_t)outside_field(task, FIELD_PID, 4);
	t->cpu = cpus_index(cpus.now);
	t->is_stimulus = sends;
	t->read_ns = NEVER;
	t->times.read_ns = NEVER;
	t->times.woken_ns = NEVER;
	forget_wakeup(t);
	/* one names itself */
	*current() = t;
}

static void at_exit_of_thread(void)
{
	if (*current())
		forget((*current())->task);
}

/* --- a wake-up ------------------------------------------------------------------------ */

/* Where a timer is found to be due. */
static void at_timer(unsigned int to_come)
{
	uint64_t timer = outside_argument(0);
	struct watched *t;

	if (!parts.count)
		return;
	t = find(outsidetime_task(timer));
	if (!may_be_woken(t))
		return;
	t->times.by_timer = true;
	t->times.begun_ns = outsidetime_due_ns(timer);
	t->times.entered_ns = parts.cpu[cpus_index(cpus.now)].interrupt_ns;
	/* without high resolution no interrupt comes for it */
	if (t->times.entered_ns < t->times.begun_ns - STALE_NS)
		t->times.entered_ns = clock_own_ns(to_come);
}

/* The agent starts its threads in order, and those that send behind all others. */
static unsigned int rank(const struct watched *t)
{
	unsigned int before = 0;

	for (const struct watched *o = parts.thread; o < parts.thread + parts.count;
	     o++)
		before += o->task && o->is_stimulus == t->is_stimulus && o->id < t->id;
	return before;
}

static struct watched *stimulus_of(const struct watched *t)
{
	for (struct watched *o = parts.thread; o < parts.thread + parts.count; o++)
		if (o->task && o->is_stimulus && rank(o) == rank(t))
			return o;
	return NULL;
}

/* What a thread sends before it wakes another comes at once. What a device carries may be
 * of an earlier reading, and some are lost: it is known if there was one. */
static int64_t sent_ns(const struct watched *t)
{
	const struct watched *s = t->stimulus;

	return s == *current() || s->readings - t->known == 1 ? s->read_ns : NEVER;
}

static void at_wake(unsigned int to_come)
{
	struct watched *t;

	if (!parts.count)
		return;
	t = find(outside_argument(0));
	if (!may_be_woken(t))
		return;
	if (!t->times.by_timer) {
		if (!t->stimulus)
			t->stimulus = stimulus_of(t);
		if (!t->stimulus)
			return;
		t->times.begun_ns = sent_ns(t);
	}
	t->times.woken_ns = clock_own_ns(to_come);
	parts.awake++;
}

/* At the end of interrupt handling, and at the begin of the scheduler: the first time
 * after the wake-up, on the CPU that the thread is of. */
static void at_place(enum options_place place, unsigned int to_come)
{
	unsigned int cpu = cpus_index(cpus.now);

	if (!parts.awake)
		return;
	for (struct watched *t = parts.thread; t < parts.thread + parts.count; t++) {
		struct wakeup_times *times = &t->times;
		bool scheduled = times->scheduled_ns != NEVER;

		if (times->woken_ns == NEVER || times->read_ns != NEVER ||
		    times->switched_ns != NEVER || t->cpu != cpu || scheduled)
			continue;
		if (place == PLACE_SCHEDULE)
			times->scheduled_ns = clock_own_ns(to_come);
		else if (times->quit_ns == NEVER)
			times->quit_ns = clock_own_ns(to_come);
	}
}

static void at_switch(unsigned int to_come)
{
	struct watched *before, *after;
	uint64_t task;

	if (!parts.count || !state_read_task(&task))
		return;
	before = find(outside_argument(0));
	if (before && outside_read_task(before->task).asleep) {
		forget_wakeup(before);
		before->slept_in = before->call;
	}
	after = find(task);
	*current() = after;
	if (!after)
		return;
	after->cpu = cpus_index(cpus.now);
	if (after->times.woken_ns != NEVER && after->times.switched_ns == NEVER)
		after->times.switched_ns = clock_own_ns(to_come);
}

static void at_call(void)
{
	struct watched *t = *current();

	if (!t)
		return;
	t->calls = t->asked = true;
	t->call = outside_value(outside_argument(0) + outside.arch->call_pc, 8);
}

void parts_at_hook(unsigned int hook, unsigned int instructions)
{
	if (outside.wrong)
		return;
	if (hook > OPTIONS_HOOKS) {
		enum options_place place =
			(enum options_place)(hook - 1 - OPTIONS_HOOKS);

		if (place == PLACE_TIMERS)
			parts.cpu[cpus_index(cpus.now)].interrupt_ns =
				clock_own_ns(instructions);
		else
			at_place(place, instructions);
		return;
	}
	switch ((enum options_hook)(hook - 1)) {
	case HOOK_WAKE:
		at_wake(instructions);
		break;
	case HOOK_SWITCHED:
		at_switch(instructions);
		break;
	case HOOK_SLEEPER:
		at_timer(instructions);
		break;
	case HOOK_RENAME:
		at_rename();
		break;
	case HOOK_EXIT:
		at_exit_of_thread();
		break;
	case HOOK_CALL:
		at_call();
		break;
	default:
		break;
	}
}

/* --- its end -------------------------------------------------------------------------- */

void parts_at_reading(bool of_program, unsigned int to_come)
{
	struct watched *t = *current();
	struct wakeup_times *times;
	bool again;

	if (!t)
		return;
	t->reads |= of_program;
	/* the kernel reads it for a program that cannot, and else for itself */
	if (!of_program && (t->reads || !t->calls || outside_is_in_interrupt()))
		return;
	/* the kernel set it in between */
	again = of_program && !t->asked && t->is_open;
	t->asked = false;
	t->read_ns = cpus.now->read_ns;
	t->readings += !again;
	t->earlier_ns[t->readings % READINGS] = t->read_ns;
	if (t->stimulus)
		t->known = t->stimulus->readings;
	times = &t->times;
	if (times->woken_ns == NEVER || (times->read_ns != NEVER && !again)) {
		close_wakeup(t); /* this is of an event that it did not sleep for */
		return;
	}
	parts.awake -= times->read_ns == NEVER;
	times->read_ns = clock_own_ns(to_come);
	if (times->begun_ns != NEVER)
		times->latency_ns = t->read_ns - times->begun_ns;
	t->is_open = true;
}

static void begin_to_measure(struct watched *t)
{
	t->part = calloc(PARTS, sizeof(*t->part));
	if (!t->part) {
		fprintf(stderr, "rtscope-plugin: no memory for the parts\n");
		exit(1);
	}
	for (unsigned int i = 0; i < PARTS; i++)
		hist_init(&t->part[i]);
	t->loop = t->slept_in;
	parts.measures = true;
}

/* An event may have been sent before the latest one: its latency says when. */
static void find_begin(struct watched *t, int64_t latency_ns)
{
	struct wakeup_times *times = &t->times;

	if (!t->stimulus || times->by_timer || times->read_ns == NEVER)
		return;
	for (unsigned int i = 0; i < READINGS; i++) {
		int64_t took_ns = t->read_ns - t->stimulus->earlier_ns[i];

		if (llabs(took_ns - latency_ns) > parts.tolerance_ns)
			continue;
		times->begun_ns = t->stimulus->earlier_ns[i];
		times->latency_ns = took_ns;
		return;
	}
}

void parts_at_mark(uint64_t latency_ns)
{
	struct watched *t = *current();
	uint64_t taken_ns, wrong_ns;

	if (!t || t->is_stimulus || !t->is_open)
		return;
	find_begin(t, (int64_t)latency_ns);
	if (!t->part)
		begin_to_measure(t);
	close_wakeup(t);
	if (!is_whole(t) || t->slept_in != t->loop)
		return;
	taken_ns = (uint64_t)t->times.latency_ns;
	wrong_ns =
		taken_ns > latency_ns ? taken_ns - latency_ns : latency_ns - taken_ns;
	t->checked++;
	t->wrong += wrong_ns > (uint64_t)parts.tolerance_ns;
	if (wrong_ns > t->most_wrong_ns)
		t->most_wrong_ns = wrong_ns;
}

/* --- what is written ------------------------------------------------------------------ */

static void write_thread(FILE *file, const struct watched *t)
{
	fprintf(file,
		"{\"tid\": %" PRIu32 ", \"checked\": %" PRIu64 ", \"wrong\": %" PRIu64
		", \"most_wrong_ns\": %" PRIu64 ", \"parts\": [",
		t->id, t->checked, t->wrong, t->most_wrong_ns);
	for (unsigned int i = 0; i < PARTS; i++) {
		fputs(i ? ", " : "", file);
		histfile_write(file, &t->part[i]);
	}
	fputs("]}", file);
}

void parts_write(FILE *file)
{
	const char *comma = "";

	fprintf(file,
		", \"parts_unknown\": \"%s\", \"parts_tolerance_ns\": %" PRId64
		", \"parts\": [",
		outside.wrong ? outside.wrong : "", parts.tolerance_ns);
	for (struct watched *t = parts.thread; t < parts.thread + parts.count; t++) {
		close_wakeup(t);
		/* a wake-up of no thread that has marked one is in no histogram */
		if (!t->part || t->part[0].min_ns == INT64_MAX)
			continue;
		fputs(comma, file);
		write_thread(file, t);
		comma = ", ";
	}
	fputs("]", file);
}
