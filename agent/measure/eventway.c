/* SPDX-License-Identifier: MIT */
#include "measure/eventway.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#define STUCK_MAX_NS   (15 * NS_PER_S) /* nothing is that late and comes yet */
#define SILENT_NS      NS_PER_S
#define SILENT_PERIODS 10 /* an event of a long period may be lost alone */

#define OVER UINT64_MAX /* in place of the number of the next event */

struct eventway *eventways_alloc(unsigned int n, const struct event_kind *kind)
{
	/* zeroed, and prefaulted when memory is locked */
	struct eventway *w = mmap(NULL, n * sizeof(*w), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (w == MAP_FAILED)
		return NULL;
	for (unsigned int i = 0; i < n; i++) {
		w[i].kind = kind;
		w[i].places = kind == &event_kind_serial ? EVENT_SERIAL : EVENT_SLOTS;
		event_ends_init(&w[i].ends);
	}
	return w;
}

/* --- the stimulus ----------------------------------------------------------------- */

static bool has_room(const struct eventway *w, uint64_t number)
{
	/* acquire: pairs with the receiver's release; it is done with the place */
	return number - atomic_load_explicit(&w->taken, memory_order_acquire) <
	       w->places;
}

/* Returns 0, -EAGAIN if the way is full, or -errno. last: 0 or EVENT_LAST. */
static int send_one(struct eventway *w, uint64_t number, uint64_t seq, int64_t now_ns,
		    uint64_t last)
{
	if (!has_room(w, number))
		return -EAGAIN;
	relax(w->sent_ns[number % EVENT_SLOTS], (uint64_t)now_ns | last);
	relax(w->seq[number % EVENT_SLOTS], seq);
	/* release: pairs with the receiver's acquire; the place is filled. Before it is
	 * sent: who gets the last one knows it */
	atomic_store_explicit(&w->sent, (number + 1) | last, memory_order_release);
	return w->kind->send(&w->ends, (uint32_t)number);
}

/* The periods of the grid that are gone when the stimulus itself was late. */
static int64_t __attribute__((noinline)) count_unsent(struct sampler *s,
						      int64_t next_ns, int64_t now_ns)
{
	for (; next_ns <= now_ns && next_ns <= s->end_ns; next_ns += s->interval_ns)
		s->way->unsent++;
	return next_ns;
}

/* For how long this event could not be sent. */
static int64_t stuck_for(struct eventway *w, uint32_t number, int64_t now_ns)
{
	int64_t stuck_ns;

	if (w->stuck_at != number + 1) {
		w->stuck_at = number + 1;
		w->stuck_since_ns = now_ns;
	}
	stuck_ns = now_ns - w->stuck_since_ns;
	if (stuck_ns > w->stuck_ns)
		w->stuck_ns = stuck_ns;
	return stuck_ns;
}

/* What was not sent has no number: the next event takes it. */
static bool __attribute__((noinline)) take_back(struct eventway *w, uint64_t sent,
						int err, int64_t now_ns)
{
	relax(w->sent_ns[sent % EVENT_SLOTS], 0);
	atomic_store_explicit(&w->sent, sent, memory_order_release);
	if (err == -EAGAIN || err == -ENOBUFS) {
		w->full++;
		if (stuck_for(w, (uint32_t)sent, now_ns) < STUCK_MAX_NS)
			return true;
		err = -ETIMEDOUT;
	}
	relax(w->send_failure, -err);
	return false;
}

void eventway_send_until_end(struct sampler *s)
{
	struct eventway *w = s->way;
	int64_t expiry_ns = s->start_ns + s->interval_ns;
	struct timespec expiry = ns_timespec(expiry_ns);
	uint64_t number = 0, seq = 1, last = 0;

	while (expiry_ns <= s->end_ns) {
		int64_t now_ns, next_ns;
		int err = clock_sleep_until(&expiry);

		if (__builtin_expect(err, 0)) {
			if (err != EINTR || relaxed(*s->stop))
				break;
			continue;
		}
		now_ns = clock_now_ns();
		if (now_ns - expiry_ns > w->stimulus_late_ns)
			w->stimulus_late_ns = now_ns - expiry_ns;
		next_ns = expiry_ns + s->interval_ns;
		if (__builtin_expect(next_ns <= now_ns, 0))
			next_ns = count_unsent(s, next_ns, now_ns);
		if (__builtin_expect(next_ns > s->end_ns, 0))
			last = EVENT_LAST;

		err = send_one(w, number, seq, now_ns, last);
		if (__builtin_expect(err, 0)) {
			if (!take_back(w, number | last, err, now_ns))
				break;
		} else {
			number++;
		}
		seq += (uint64_t)((next_ns - expiry_ns) / s->interval_ns);
		take_advance(&expiry, next_ns - expiry_ns);
		expiry_ns = next_ns;
		if (__builtin_expect(relaxed(*s->stop), 0))
			break;
	}
	/* release: as above */
	atomic_store_explicit(&w->sent, number | EVENT_LAST, memory_order_release);
	s->end_ns = expiry_ns - s->interval_ns;
}

/* --- the receiver ----------------------------------------------------------------- */

/* The whole number of an event, of which the way carries the lower half. */
static uint64_t whole_number(uint64_t expected, int64_t received)
{
	return expected +
	       (uint64_t)(int64_t)(int32_t)((uint32_t)received - (uint32_t)expected);
}

/* Numbers that were left out; of more than the places the last. */
static void leave_out(struct eventway *w, uint64_t from, uint64_t to, int64_t wake_ns)
{
	int64_t silent_ns;

	w->lost += to - from;
	if (to - from > EVENT_SLOTS)
		from = to - EVENT_SLOTS;
	silent_ns = wake_ns - (int64_t)relaxed(w->sent_ns[from % EVENT_SLOTS]);
	if (silent_ns > w->silent_ns)
		w->silent_ns = silent_ns;
	for (; from < to; from++)
		w->left_out[from % EVENT_SLOTS] = from + 1;
}

/* An event that is not the next one. Returns whether it is a sample. */
static bool judge_strange(struct sampler *s, uint64_t number, uint64_t expected,
			  uint64_t sent, int64_t wake_ns)
{
	struct eventway *w = s->way;
	uint64_t *left_out = &w->left_out[number % EVENT_SLOTS];

	if (number >= sent) { /* nobody has sent it: no event of ours */
		w->doubled++;
		return false;
	}
	if (number > expected) {
		leave_out(w, expected, number, wake_ns);
	} else if (sent - number >= EVENT_SLOTS || *left_out != number + 1) {
		w->doubled++;
		return false;
	} else {
		*left_out = 0;
		w->reordered++;
		w->lost--;
	}
	relax(s->progress.missed_periods, w->lost);
	return true;
}

static void note_rare(struct sampler *s, uint64_t number, int64_t wake_ns)
{
	const struct eventway *w = s->way;
	const unsigned int at = number % EVENT_SLOTS;
	const int64_t sent_ns = (int64_t)(relaxed(w->sent_ns[at]) & ~EVENT_LAST);

	take_rare(s, &(struct wakeup){ relaxed(w->seq[at]), sent_ns, wake_ns });
}

/* Whether the loop goes on after a wait that brought no event. */
static bool goes_on(struct sampler *s, int err)
{
	struct eventway *w = s->way;

	if (err != -EINTR) {
		relax(w->receive_failure, -err);
		return false;
	}
	s->interrupted_sleeps++;
	return !relaxed(w->closing);
}

/* Takes an event that may be any one. Returns the number of the next one. */
static uint64_t take_any(struct sampler *s, int64_t received, int64_t wake_ns,
			 uint64_t expected, uint64_t sent)
{
	struct eventway *w = s->way;
	uint64_t number = whole_number(expected, received);
	bool is_next = number == expected && number < sent;

	if (!is_next && !judge_strange(s, number, expected, sent, wake_ns))
		return expected;
	note_rare(s, number, wake_ns);
	if (number < expected)
		return expected;
	/* release: pairs with the stimulus' acquire */
	atomic_store_explicit(&w->taken, number + 1, memory_order_release);
	return number + 1;
}

/* What is not the next event, or rare, or the last one, or none. Returns the number of the
 * next one, or OVER. */
static uint64_t __attribute__((noinline))
take_strange(struct sampler *s, int64_t received, int64_t wake_ns, uint64_t expected)
{
	struct eventway *w = s->way;
	/* acquire: pairs with the stimulus' release; the place is filled */
	uint64_t sent = atomic_load_explicit(&w->sent, memory_order_acquire);

	if (received >= 0)
		expected = take_any(s, received, wake_ns, expected, sent & ~EVENT_LAST);
	else if (!goes_on(s, (int)received))
		return OVER;
	sent = relaxed(w->sent); /* the last one may be known by now */
	return expected >= (sent ^ EVENT_LAST) ? OVER : expected;
}

void eventway_receive_until_end(struct sampler *s)
{
	struct eventway *w = s->way;
	int64_t (*const receive)(struct event_ends *e) = w->kind->receive;
	uint64_t expected = 0;

	for (;;) {
		int64_t received = receive(&w->ends);
		int64_t wake_ns = clock_now_ns();
		/* of the last one, and of one that was not sent, it is rare too */
		int64_t latency_ns =
			(int64_t)((uint64_t)wake_ns -
				  relaxed(w->sent_ns[expected % EVENT_SLOTS]));

		if (__builtin_expect(received != (int64_t)(uint32_t)expected, 0) ||
		    __builtin_expect(take_is_rare(s, latency_ns), 0)) {
			expected = take_strange(s, received, wake_ns, expected);
			if (expected == OVER)
				break;
			continue;
		}
		take_usual(s, latency_ns);
		expected++;
		/* release: pairs with the stimulus' acquire */
		atomic_store_explicit(&w->taken, expected, memory_order_release);
	}
}

/* --- the supervisor --------------------------------------------------------------- */

void eventway_end_wait(struct eventway *w, struct sampler *receiver, bool lost)
{
	if (lost)
		relax(w->closing, true);
	if (w->kind->close_wait)
		w->kind->close_wait(&w->ends);
	else
		sampler_wake(receiver);
}

void eventway_settle(struct eventway *w, struct sampler *receiver,
		     const struct sampler *stimulus)
{
	const uint64_t sent = relaxed(w->sent) & ~EVENT_LAST, taken = relaxed(w->taken);
	int64_t silent_ns = 0;

	relax(w->sent, sent);
	w->lost += sent - taken;
	relax(receiver->progress.missed_periods, w->lost + w->full);
	receiver->end_ns = stimulus->end_ns;

	if (taken < sent)
		silent_ns = stimulus->end_ns -
			    (int64_t)(relaxed(w->sent_ns[taken % EVENT_SLOTS]) &
				      ~EVENT_LAST);
	else if (w->stuck_at == (uint32_t)sent + 1)
		silent_ns = stimulus->end_ns - w->stuck_since_ns;
	/* a receiver that does not run is as late with what has waited for it */
	if (taken && silent_ns > SILENT_NS + SILENT_PERIODS * receiver->interval_ns +
					 receiver->hist.max_ns)
		relax(w->receive_failure, ETIMEDOUT);
}

int eventway_failure(const struct eventway *w, const char **what)
{
	int err = relaxed(w->send_failure);

	*what = "send";
	if (!err) {
		err = relaxed(w->receive_failure);
		*what = "receive";
	}
	return err;
}
