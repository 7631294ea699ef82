/* SPDX-License-Identifier: MIT */
/* Real threads for each kind of event: only sums are asserted. Losses are forced. */
#include "measure/eventway.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/check.h"

#define INTERVAL_NS INT64_C(500000)
#define EVENTS      40
#define PATIENCE_NS (60 * NS_PER_S)

static _Atomic bool stop;

static void wake(int signo)
{
	(void)signo;
}

/* --- kinds, each with two threads ------------------------------------------------- */

static const char *const kinds[] = { "futex", "eventfd", "pipe", "signal",
				     "mq",    "sem",     "cond", "pty" };

static struct eventway *open_way(const char *name)
{
	struct event_refusal refusal = { 0 };
	struct event_choice choice;
	struct eventway *w;

	CHECK(event_parse(name, &choice) == 0);
	w = eventways_alloc(1, choice.kind);
	CHECK(w);
	CHECK(choice.kind->open(&w->ends, &choice, &refusal) == 0);
	return w;
}

static void close_way(struct eventway *w)
{
	event_ends_close(&w->ends);
	CHECK(munmap(w, sizeof(*w)) == 0);
}

static void start(struct sampler *all, unsigned int i, struct eventway *w)
{
	struct sampler *s = &all[i];

	s->cpu = -1;
	s->policy = (struct policy){ .kind = POLICY_OTHER };
	s->interval_ns = INTERVAL_NS;
	s->stop = &stop;
	s->way = w;
	s->is_stimulus = i;
	s->loop = i ? eventway_send_until_end : eventway_receive_until_end;
	worst_init(&s->worst, WORST_MAX);
	CHECK(sampler_start(all, i, 2) == 0);
	CHECK(sampler_wait_ready(s, clock_now_ns() + PATIENCE_NS) == SAMPLER_READY);
}

static void let_go(struct sampler *s, int64_t start_ns)
{
	s->start_ns = start_ns;
	s->end_ns = start_ns + EVENTS * INTERVAL_NS;
	atomic_store_explicit(&s->go, true, memory_order_release);
}

static void each_event_is_one_sample(const char *name)
{
	struct eventway *w = open_way(name);
	struct sampler *s = sampler_alloc(2);
	int64_t now_ns = clock_now_ns();
	uint64_t last = 0;

	CHECK(s);
	start(s, 0, w);
	start(s, 1, w);
	w->ends.receiver = s[0].tid;
	let_go(&s[0], now_ns);
	let_go(&s[1], now_ns);
	sampler_join(&s[1]);
	/* a stimulus that overslept its last period has told nobody of an end */
	while (!atomic_load(&s[0].progress.done)) {
		if ((w->taken | EVENT_LAST) == w->sent)
			eventway_end_wait(w, &s[0], false);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	sampler_join(&s[0]);
	eventway_settle(w, &s[0], &s[1]);

	/* a queue of eight may have been full, if this machine had other work to do */
	CHECK(w->sent + w->unsent + w->full == EVENTS);
	CHECK(w->lost == 0 && w->doubled == 0 && w->reordered == 0);
	CHECK(s[0].progress.samples == w->sent);
	CHECK(s[0].progress.missed_periods == w->full);
	CHECK(s[0].hist.early == 0);
	CHECK(s[0].end_ns == now_ns + EVENTS * INTERVAL_NS);
	for (unsigned int i = 0; i < s[0].worst.count; i++) {
		const struct wakeup *e = &s[0].worst.entry[i];

		/* the stimulus is never before its grid */
		CHECK(e->seq >= 1 && e->seq <= EVENTS);
		CHECK(e->expiry_ns >= now_ns + (int64_t)e->seq * INTERVAL_NS);
		CHECK(e->wake_ns >= e->expiry_ns);
		last = e->seq > last ? e->seq : last;
	}
	CHECK(s[0].worst.count == w->sent);
	sampler_free(s, 2);
	close_way(w);
}

static void a_silent_peer_does_not_hold_the_receiver(const char *name)
{
	struct eventway *w = open_way(name);
	struct sampler *s = sampler_alloc(2);

	CHECK(s);
	start(s, 0, w);
	let_go(&s[0], clock_now_ns());
	while (!atomic_load(&s->progress.done)) {
		eventway_end_wait(w, s, true);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	sampler_join(s);
	CHECK(s->progress.samples == 0);
	sampler_free(s, 2);
	close_way(w);
}

/* --- what comes through a way of which the test decides ---------------------------- */

static uint64_t old_event; /* the first of them */
static int64_t old_ns;     /* how long before the others it was sent */
static const int64_t *script;
static unsigned int script_at, script_length;

static int64_t receive_script(struct event_ends *e)
{
	(void)e;
	return script_at < script_length ? script[script_at++] : -EPIPE;
}

static int send_nothing(struct event_ends *e, uint32_t number)
{
	(void)e;
	(void)number;
	return 0;
}

static int send_when_even(struct event_ends *e, uint32_t number)
{
	static unsigned int calls;

	(void)e;
	(void)number;
	return calls++ % 2 ? -EAGAIN : 0;
}

static int send_to_gone(struct event_ends *e, uint32_t number)
{
	(void)e;
	return number < 3 ? 0 : -ENETDOWN;
}

static const struct event_kind scripted = { "scripted",     NULL, send_nothing,
					    receive_script, NULL, false };

static struct sampler *receive(struct eventway *w, const int64_t *numbers,
			       unsigned int length, uint64_t sent)
{
	struct sampler *s = sampler_alloc(1);

	CHECK(s);
	script = numbers;
	script_at = 0;
	script_length = length;
	hist_init(&s->hist);
	worst_init(&s->worst, WORST_MAX);
	s->interval_ns = NS_PER_S * 3600;
	s->way = w;
	s->stop = &stop;
	w->sent = sent;
	if (!w->closing)
		w->sent |= EVENT_LAST;
	for (uint64_t i = sent < EVENT_SLOTS ? 0 : sent - EVENT_SLOTS; i < sent; i++) {
		w->sent_ns[i % EVENT_SLOTS] =
			(uint64_t)(clock_now_ns() - (i >= old_event ? old_ns : 0));
		w->seq[i % EVENT_SLOTS] = i + 1;
	}
	if (!w->closing)
		w->sent_ns[(sent - 1) % EVENT_SLOTS] |= EVENT_LAST;
	eventway_receive_until_end(s);
	return s;
}

#define RECEIVE(w, numbers, sent)                                                      \
	receive(w, numbers, sizeof(numbers) / sizeof((numbers)[0]), sent)

static void lost_doubled_and_reordered_events_are_counted(void)
{
	/* 2 is lost, 3 comes twice, 5 after 6 and again; 9 was never sent */
	static const int64_t numbers[] = { 0, 1, 3, 3, 4, 6, 5, 5, 9, 7 };
	struct eventway *w = eventways_alloc(1, &scripted);
	struct sampler *s = RECEIVE(w, numbers, 8);
	struct sampler grid = { .end_ns = 7 };

	eventway_settle(w, s, &grid);
	CHECK(s->progress.samples == 7);
	CHECK(w->lost == 1 && w->doubled == 3 && w->reordered == 1);
	CHECK(s->progress.missed_periods == 1);
	CHECK(s->end_ns == 7);
	CHECK(w->receive_failure == 0);
	sampler_free(s, 1);
	close_way(w);
}

static void what_nobody_sent_is_no_sample_even_if_it_is_the_next(void)
{
	static const int64_t numbers[] = { 0, 1, 2, -EINTR };
	struct eventway *w = eventways_alloc(1, &scripted);
	struct sampler *s;

	w->closing = true;
	s = RECEIVE(w, numbers, 2);
	CHECK(s->progress.samples == 2 && w->doubled == 1 && w->taken == 2);
	sampler_free(s, 1);
	close_way(w);
}

static void what_has_not_come_at_the_end_is_lost(void)
{
	static const int64_t numbers[] = { 0, 1, -EINTR };
	struct eventway *w = eventways_alloc(1, &scripted);
	struct sampler grid = { 0 };
	struct sampler *s;

	w->closing = true;
	s = RECEIVE(w, numbers, 5);
	w->full = 2;
	eventway_settle(w, s, &grid);
	CHECK(s->progress.samples == 2 && w->lost == 3);
	CHECK(s->progress.missed_periods == 5);
	sampler_free(s, 1);
	close_way(w);
}

/* Of a way of a period of 1 ms, whose events from number on were sent 3 s ago. */
static int judge_way(uint64_t number, const int64_t *numbers, unsigned int length,
		     int64_t *silent_ns)
{
	struct eventway *w = eventways_alloc(1, &scripted);
	struct sampler grid = { .end_ns = clock_now_ns() }, *s;
	const char *what;
	int err;

	old_event = number;
	old_ns = 3 * NS_PER_S;
	w->closing = numbers[length - 1] == -EINTR;
	s = receive(w, numbers, length, 6);
	s->interval_ns = 1000000;
	eventway_settle(w, s, &grid);
	*silent_ns = w->silent_ns;
	err = eventway_failure(w, &what);
	old_ns = 0;
	sampler_free(s, 1);
	close_way(w);
	return err;
}

static void a_silent_way_is_told_from_a_late_receiver(void)
{
	static const int64_t interrupted[] = { 0, 5 }, dead[] = { 0, -EINTR },
			     late[] = { 0, 1, -EINTR },
			     in_order[] = { 0, 1, 2, 3, 4, 5 };
	int64_t silent_ns;

	CHECK(judge_way(1, interrupted, 2, &silent_ns) == 0 && silent_ns > NS_PER_S);
	CHECK(judge_way(1, dead, 2, &silent_ns) == ETIMEDOUT);
	CHECK(judge_way(2, late, 3, &silent_ns) == ETIMEDOUT);
	CHECK(judge_way(1, late, 3, &silent_ns) == 0); /* what came was as late */
	CHECK(judge_way(3, in_order, 6, &silent_ns) == 0 && silent_ns == 0);
}

static void an_event_from_long_ago_has_no_time_any_more(void)
{
	static const int64_t numbers[] = { 5000, 5000 - EVENT_SLOTS, 5001 };
	struct eventway *w = eventways_alloc(1, &scripted);
	struct sampler *s = RECEIVE(w, numbers, 5002);

	CHECK(s->progress.samples == 2 && w->doubled == 1 && w->lost == 5000);
	sampler_free(s, 1);
	close_way(w);
}

static void a_way_that_breaks_says_which_end(void)
{
	static const int64_t numbers[] = { 0, -ENETDOWN };
	struct eventway *w = eventways_alloc(1, &scripted);
	struct sampler *s = RECEIVE(w, numbers, 5);
	const char *what;

	CHECK(eventway_failure(w, &what) == ENETDOWN && strcmp(what, "receive") == 0);
	sampler_free(s, 1);
	close_way(w);
}

static struct sampler *send(struct eventway *w, int64_t intervals)
{
	struct sampler *s = sampler_alloc(1);

	CHECK(s);
	s->interval_ns = 20000;
	s->start_ns = clock_now_ns();
	s->end_ns = s->start_ns + intervals * s->interval_ns;
	s->way = w;
	s->stop = &stop;
	s->is_stimulus = true;
	eventway_send_until_end(s);
	return s;
}

static void nothing_is_sent_into_a_full_way(void)
{
	struct eventway *w = eventways_alloc(1, &scripted);
	struct sampler *s;

	w->taken = 4 - (uint64_t)EVENT_SLOTS; /* four places are left */
	s = send(w, 5000);
	CHECK(w->sent == (4 | EVENT_LAST));
	CHECK(w->full > 0 && 4 + w->full + w->unsent == 5000);
	CHECK(eventway_failure(w, &(const char *){ NULL }) == 0);
	sampler_free(s, 1);
	close_way(w);
}

static int send_never(struct event_ends *e, uint32_t number)
{
	(void)e;
	(void)number;
	return -ENOBUFS;
}

static void a_way_that_takes_nothing_any_more_is_given_up(void)
{
	static const struct event_kind never = { "never",        NULL, send_never,
						 receive_script, NULL, false };
	struct eventway *w = eventways_alloc(1, &never);
	struct sampler receiver = { .interval_ns = 20000 };
	struct sampler *s = send(w, 5000);
	const char *what;

	CHECK(w->stuck_at == 1 && w->stuck_ns > 0 && eventway_failure(w, &what) == 0);
	sampler_free(s, 1);
	w->stuck_since_ns -= 60 * NS_PER_S;
	w->taken = w->sent = 0;
	s = send(w, INT64_C(1) << 40); /* its end is the failure */
	CHECK(eventway_failure(w, &what) == ETIMEDOUT && strcmp(what, "send") == 0);

	w->send_failure = 0;
	w->sent = w->taken = 1; /* one has come since */
	eventway_settle(w, &receiver, s);
	CHECK(eventway_failure(w, &what) == 0);
	w->stuck_at = 2;
	eventway_settle(w, &receiver, s);
	CHECK(eventway_failure(w, &what) == ETIMEDOUT);
	sampler_free(s, 1);
	close_way(w);
}

/* A byte more than it can tell apart would be taken for one of long ago. */
static void a_serial_line_has_as_many_on_their_way_as_a_byte_tells_apart(void)
{
	struct eventway *w = eventways_alloc(1, &event_kind_serial);
	struct sampler *s;

	w->kind = &scripted;
	s = send(w, 5000);
	CHECK(w->sent == (127 | EVENT_LAST) && w->full > 0);
	sampler_free(s, 1);
	close_way(w);
}

static void what_a_full_way_refused_has_no_number(void)
{
	static const struct event_kind half = { "half",         NULL, send_when_even,
						receive_script, NULL, false };
	struct eventway *w = eventways_alloc(1, &half);
	struct sampler *s = send(w, 500);

	uint64_t sent = w->sent ^ EVENT_LAST;

	CHECK(sent + w->full + w->unsent == 500);
	CHECK(sent == w->full || sent == w->full + 1);
	sampler_free(s, 1);
	close_way(w);
}

static void an_interface_that_is_gone_ends_the_stimulus(void)
{
	static const struct event_kind gone = { "gone",         NULL, send_to_gone,
						receive_script, NULL, false };
	struct eventway *w = eventways_alloc(1, &gone);
	struct sampler *s = send(w, INT64_C(1) << 40); /* its end is the failure */
	const char *what;

	CHECK(w->sent == (3 | EVENT_LAST));
	CHECK(w->sent_ns[2] && !w->sent_ns[3]); /* no time that a receiver could take */
	CHECK(eventway_failure(w, &what) == ENETDOWN && strcmp(what, "send") == 0);
	sampler_free(s, 1);
	close_way(w);
}

static void options_of_an_event_are_exact(void)
{
	static const char *const wrong[] = {
		"",
		"bogus",
		"futex:",
		"futex:cpu",
		"futex:x=1",
		"futex:cpu=x",
		"timer:cpu=1",
		"futex:priority=0",
		"raw:from=a",
		"pty:from=a:to=b",
		"raw:from=a/b:to=c",
		"raw:from=0123456789abcdef:to=b",
		"futex:priority=100",
		"futex:cpu=-1",
		"hwlat:cpu=1",
		"hwlat:threshold=0",
		"hwlat:width=x",
		"poll:threshold=5",
	};
	struct event_choice c;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(strcmp(wrong[i], "futex:") == 0 ||
		      event_parse(wrong[i], &c) == -EINVAL);
	CHECK(event_parse("timer", &c) == 0 && !c.kind && event_is_timer(&c));
	CHECK(strcmp(event_name(&c), "timer") == 0);
	CHECK(event_parse("hwlat", &c) == 0 && !c.kind && !event_is_timer(&c));
	CHECK(strcmp(event_name(&c), "hwlat") == 0);
	CHECK(event_parse("mq:cpu=same:priority=7", &c) == 0);
	CHECK(c.cpu == EVENT_CPU_SAME && c.priority == 7);
	CHECK(strcmp(event_name(&c), "mq") == 0);
	CHECK(event_parse("raw:from=eth0:to=eth1:cpu=3", &c) == 0);
	CHECK(c.cpu == 3 && strcmp(c.from, "eth0") == 0 && strcmp(c.to, "eth1") == 0);
}

static void interfaces_that_are_not_there_are_refused(void)
{
	static const char *const between[] = { "raw:from=rtscope-no:to=rtscope-ne",
					       "udp:from=rtscope-no:to=rtscope-ne",
					       "can:from=rtscope-no:to=rtscope-ne",
					       "serial:from=rtscope-no:to=ttyS1" };
	struct event_refusal refusal = { 0 };
	struct event_choice choice;
	struct event_ends ends;

	for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++) {
		CHECK(event_parse(between[i], &choice) == 0);
		event_ends_init(&ends);
		CHECK(choice.kind->open(&ends, &choice, &refusal) == -ENODEV);
		CHECK(strstr(refusal.why, "rtscope-no"));
		CHECK(refusal.remedy && refusal.cause);
		event_ends_close(&ends);
	}
}

int main(void)
{
	sigset_t wake_only;

	CHECK(sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = wake }, NULL) == 0);
	/* as the agent's threads have it: the signal of an event ends nothing */
	sigfillset(&wake_only);
	sigdelset(&wake_only, SIGUSR1);
	CHECK(sigprocmask(SIG_SETMASK, &wake_only, NULL) == 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		each_event_is_one_sample(kinds[i]);
		a_silent_peer_does_not_hold_the_receiver(kinds[i]);
	}
	lost_doubled_and_reordered_events_are_counted();
	what_nobody_sent_is_no_sample_even_if_it_is_the_next();
	what_has_not_come_at_the_end_is_lost();
	an_event_from_long_ago_has_no_time_any_more();
	a_silent_way_is_told_from_a_late_receiver();
	a_way_that_takes_nothing_any_more_is_given_up();
	a_way_that_breaks_says_which_end();
	nothing_is_sent_into_a_full_way();
	a_serial_line_has_as_many_on_their_way_as_a_byte_tells_apart();
	what_a_full_way_refused_has_no_number();
	an_interface_that_is_gone_ends_the_stimulus();
	options_of_an_event_are_exact();
	interfaces_that_are_not_there_are_refused();
	return 0;
}
