/* SPDX-License-Identifier: MIT */
/* A real thread, with whatever lateness this machine gives it: only sums are asserted. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "measure/sampler.h"
#include "tests/check.h"

#define INTERVAL_NS INT64_C(1000000)
#define PATIENCE_NS (60 * NS_PER_S)

static _Atomic bool stop;

static void wake(int signo)
{
	(void)signo;
}

static struct sampler *prepare_one(int cpu)
{
	struct sampler *s = sampler_alloc(1);

	CHECK(s);
	CHECK((uintptr_t)s % 64 == 0);
	atomic_store(&stop, false);
	s->cpu = cpu;
	s->policy = (struct policy){ .kind = POLICY_OTHER };
	s->interval_ns = INTERVAL_NS;
	s->stop = &stop;
	worst_init(&s->worst, WORST_MAX);
	CHECK(sampler_start(s, 0, 1) == 0);
	CHECK(sampler_wait_ready(s, clock_now_ns() + PATIENCE_NS) == SAMPLER_READY);
	return s;
}

static void let_go(struct sampler *s, int64_t start_ns, int64_t intervals)
{
	s->start_ns = start_ns;
	s->end_ns = start_ns + intervals * s->interval_ns;
	atomic_store_explicit(&s->go, true, memory_order_release);
}

static void join(struct sampler *s)
{
	sampler_join(s);
	CHECK(atomic_load(&s->progress.done));
}

static uint64_t samples(const struct sampler *s)
{
	return atomic_load(&s->progress.samples);
}

static uint64_t missed_periods(const struct sampler *s)
{
	return atomic_load(&s->progress.missed_periods);
}

static int64_t periods(const struct sampler *s)
{
	CHECK((s->end_ns - s->start_ns) % s->interval_ns == 0);
	return (s->end_ns - s->start_ns) / s->interval_ns;
}

static uint64_t in_buckets(const struct hist *h)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		count += h->count[i];
	return count;
}

/* What must be true of every run, from the worst wake-ups, if all of them are kept. */
static void check_sums(const struct sampler *s)
{
	uint64_t sum = 0, missed_sum = 0, skips = 0, late = 0;
	struct wide sum_sq = { 0 };

	CHECK(s->worst.count == samples(s));
	CHECK((int64_t)(samples(s) + missed_periods(s)) == periods(s));
	CHECK(in_buckets(&s->hist) + s->hist.early + s->hist.overflow == samples(s));
	for (unsigned int i = 0; i < s->worst.count; i++) {
		const struct wakeup *w = &s->worst.entry[i];
		int64_t late_ns = w->wake_ns - w->expiry_ns;

		CHECK(w->expiry_ns == s->start_ns + (int64_t)w->seq * s->interval_ns);
		CHECK(w->expiry_ns <= s->end_ns);
		sum += (uint64_t)late_ns;
		wide_add_square(&sum_sq, (uint64_t)late_ns);
		late += late_ns >= s->interval_ns;
		for (int64_t gone_ns = w->expiry_ns + s->interval_ns;
		     gone_ns <= w->wake_ns && gone_ns <= s->end_ns;
		     gone_ns += s->interval_ns) {
			skips++;
			missed_sum += (uint64_t)(w->wake_ns - gone_ns);
		}
	}
	CHECK(s->hist.sum_ns.low == sum && s->hist.sum_ns.high == 0);
	CHECK(s->hist.sum_sq_ns2.low == sum_sq.low &&
	      s->hist.sum_sq_ns2.high == sum_sq.high);
	CHECK(s->overruns == late);
	CHECK(missed_periods(s) == skips);
	CHECK(s->missed_periods_sum_ns.low == missed_sum &&
	      s->missed_periods_sum_ns.high == 0);
}

static void samples_and_skipped_make_up_the_grid(void)
{
	struct sampler *s = prepare_one(-1);

	let_go(s, clock_now_ns(), 50);
	join(s);
	CHECK(periods(s) == 50);
	check_sums(s);
	CHECK(s->hist.early == 0);
	CHECK(s->hist.max_ns ==
	      s->worst.entry[0].wake_ns - s->worst.entry[0].expiry_ns);
	CHECK(s->hist.min_ns >= 0 && s->hist.min_ns <= s->hist.max_ns);
	CHECK(s->clock_before.reads > 0 && s->clock_after.reads > 0);
	sampler_free(s, 1);
}

static void a_pinned_thread_is_where_it_should_be(void)
{
	struct cpulist usable, expected = { 0 };
	struct sampler *s;
	int cpu;

	CHECK(cpulist_get_affinity(&usable) == 0);
	cpu = cpulist_next(&usable, 0);
	cpulist_add(&expected, (unsigned int)cpu);
	s = prepare_one(cpu);
	CHECK(cpulist_equal(&s->got_affinity, &expected));
	CHECK(s->got_policy.kind == POLICY_OTHER && s->got_policy.priority == 0);
	let_go(s, clock_now_ns(), 5);
	join(s);
	check_sums(s);
	sampler_free(s, 1);
}

/* The first wake-up is known to be 19 intervals late and more: its exact lateness is in
 * the list of the worst, and from it follows which periods must have been missed. */
static void a_late_start_skips_what_is_gone(void)
{
	struct sampler *s = prepare_one(-1);

	let_go(s, clock_now_ns() - 20 * INTERVAL_NS, 50);
	join(s);
	CHECK(periods(s) == 50);
	CHECK(s->overruns >= 1);
	CHECK(missed_periods(s) >= 19);
	CHECK(s->worst.entry[s->worst.count - 1].seq >= 1);
	check_sums(s);
	sampler_free(s, 1);
}

/* 20 periods are gone at its start; whichever else are missed stay empty too. */
static void each_wakeup_is_kept_in_its_period(void)
{
	struct samples *all = samples_alloc(1, 51);
	struct sampler *s = prepare_one(-1);
	int64_t sum_ns = 0, max_ns = 0;
	uint64_t kept = 0;

	CHECK(all);
	s->samples = all;
	let_go(s, clock_now_ns() - 20 * INTERVAL_NS, 50);
	join(s);
	check_sums(s);
	for (unsigned int i = 0; i < 51; i++) {
		if (all->latency_ns[i] == SAMPLES_NONE)
			continue;
		kept++;
		sum_ns += all->latency_ns[i];
		if (all->latency_ns[i] > max_ns)
			max_ns = all->latency_ns[i];
	}
	CHECK(kept == samples(s));
	CHECK((uint64_t)sum_ns == s->hist.sum_ns.low && max_ns == s->hist.max_ns);
	CHECK(all->latency_ns[0] != SAMPLES_NONE);
	for (unsigned int i = 1; i < 19; i++)
		CHECK(all->latency_ns[i] == SAMPLES_NONE);
	for (unsigned int i = 0; i < s->worst.count; i++)
		CHECK(all->latency_ns[s->worst.entry[i].seq - 1] ==
		      s->worst.entry[i].wake_ns - s->worst.entry[i].expiry_ns);
	samples_free(all, 1);
	sampler_free(s, 1);
}

static void the_end_of_the_grid_is_never_passed(void)
{
	struct sampler *s = prepare_one(-1);
	int64_t start_ns = clock_now_ns() - 1000 * INTERVAL_NS;

	let_go(s, start_ns, 10);
	join(s);
	CHECK(samples(s) == 1 && missed_periods(s) == 9 && s->overruns == 1);
	CHECK(s->end_ns == start_ns + 10 * INTERVAL_NS);
	check_sums(s);
	sampler_free(s, 1);
}

/* The grid is to have more samples than are awaited, however late they are. */
static void stop_after(struct sampler *s, uint64_t awaited)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	while (samples(s) < awaited &&
	       !atomic_load_explicit(&s->progress.done, memory_order_acquire))
		nanosleep(&pause, NULL);
	atomic_store_explicit(&stop, true, memory_order_relaxed);
	while (!atomic_load_explicit(&s->progress.done, memory_order_acquire)) {
		sampler_wake(s);
		nanosleep(&pause, NULL);
	}
	join(s);
}

/* On a grid of 1 ns an activation is due at the very moment of every wake-up: so no
 * wake-up is at the expiry of another. One run with two samples at least is awaited: on
 * a busy machine the first may be later than the grid is long. */
static void an_activation_that_is_due_at_the_wake_up_is_gone(void)
{
	bool checked = false;

	for (int run = 0; run < 1000 && !checked; run++) {
		struct sampler *s = prepare_one(-1);
		const struct wakeup *w = s->worst.entry;

		s->interval_ns = 1;
		let_go(s, clock_now_ns() + 2 * INTERVAL_NS, 50 * INTERVAL_NS);
		stop_after(s, 2);
		CHECK((int64_t)(samples(s) + missed_periods(s)) == periods(s));
		for (unsigned int i = 0; i < s->worst.count; i++)
			for (unsigned int j = 0; j < s->worst.count; j++)
				CHECK(w[i].seq >= w[j].seq ||
				      w[i].wake_ns < w[j].expiry_ns);
		checked = s->worst.count >= 2;
		sampler_free(s, 1);
	}
	CHECK(checked);
}

/* Where long has 32 bits, the nanoseconds of such a step do not fit tv_nsec. */
static void a_step_of_many_seconds_is_exact(void)
{
	struct sampler *s = prepare_one(-1);
	int64_t start_ns = clock_now_ns() - 100 * NS_PER_S - 7;

	s->interval_ns = 10 * NS_PER_S;
	let_go(s, start_ns, 9);
	join(s);
	CHECK(samples(s) == 1 && missed_periods(s) == 8);

	sampler_free(s, 1);
	s = prepare_one(-1);
	s->interval_ns = 5 * NS_PER_S / 100;
	let_go(s, clock_now_ns() - 5 * NS_PER_S, 1000000);
	stop_after(s, 2);
	CHECK(samples(s) >= 2);
	CHECK(s->hist.early == 0); /* an overflow would wake at once */
	check_sums(s);
	sampler_free(s, 1);
}

/* Each sample gives up the CPU once, and what else makes a thread block on a busy machine
 * comes on top: of 20 runs one without that is awaited. Runs with a late sample are left
 * out: their thread may not have slept, neither before the next one nor at the end. */
static void the_sleep_behind_the_grid_is_no_switch_of_the_samples(void)
{
	bool as_many_as_samples = false;

	for (int i = 0; i < 20 && !as_many_as_samples;) {
		struct sampler *s = prepare_one(-1);

		s->interval_ns = 10 * INTERVAL_NS;
		let_go(s, clock_now_ns(), 2);
		join(s);
		CHECK(s->usage.voluntary_switches >= 0);
		if (s->hist.max_ns < 5 * INTERVAL_NS) {
			as_many_as_samples =
				s->usage.voluntary_switches == (int64_t)samples(s);
			i++;
		}
		sampler_free(s, 1);
	}
	CHECK(as_many_as_samples);
}

static void a_stop_ends_the_grid_where_it_got_to(void)
{
	struct sampler *s = prepare_one(-1);
	int64_t start_ns = clock_now_ns();

	let_go(s, start_ns, 1000000);
	stop_after(s, 5);
	CHECK(samples(s) >= 5);
	CHECK(s->start_ns == start_ns);
	CHECK(periods(s) < 1000000);
	CHECK((int64_t)(samples(s) + missed_periods(s)) == periods(s));
	sampler_free(s, 1);
}

static void a_stop_before_the_go_ends_the_thread(void)
{
	struct sampler *s = prepare_one(-1);

	atomic_store_explicit(&stop, true, memory_order_relaxed);
	sampler_join(s);
	CHECK(samples(s) == 0);
	CHECK(s->clock_after.reads == 0);
	sampler_free(s, 1);
}

static void a_signal_that_is_no_stop_is_counted_and_slept_over(void)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	struct sampler *s = prepare_one(-1);

	s->interval_ns = 200 * INTERVAL_NS;
	let_go(s, clock_now_ns(), 2);
	for (int i = 0; i < 5; i++) {
		nanosleep(&pause, NULL);
		sampler_wake(s);
	}
	join(s);
	CHECK(s->interrupted_sleeps <= 5);
	CHECK(s->hist.early == 0);
	CHECK((int64_t)(samples(s) + missed_periods(s)) == 2);
	sampler_free(s, 1);
}

static void a_thread_that_cannot_be_pinned_says_so(void)
{
	struct sampler *s = sampler_alloc(1);

	CHECK(s);
	atomic_store(&stop, false);
	s->cpu = CPULIST_MAX_CPUS - 1;
	s->policy = (struct policy){ .kind = POLICY_OTHER };
	s->stop = &stop;
	CHECK(sampler_start(s, 0, 1) == 0);
	CHECK(sampler_wait_ready(s, clock_now_ns() + PATIENCE_NS) == SAMPLER_FAILED);
	CHECK(s->failure == EINVAL);
	CHECK(strcmp(s->failed_at, "pin to the CPU") == 0);
	CHECK(pthread_join(s->thread, NULL) == 0);
	sampler_free(s, 1);
}

static void waiting_for_a_thread_that_does_not_run_ends(void)
{
	struct sampler *s = sampler_alloc(1);

	CHECK(s);
	CHECK(sampler_wait_ready(s, clock_now_ns()) == SAMPLER_STARTING);
	sampler_free(s, 1);
}

struct reader {
	struct sampler *sampler;
	pthread_t thread;
	struct wakeup last;
	uint64_t records;
};

/* What the supervisor does once a second, as fast as it goes. */
static void *read_all_the_time(void *arg)
{
	struct reader *r = arg;
	struct sampler *s = r->sampler;
	uint32_t version = 0;
	bool last_round = false;

	while (!last_round) {
		last_round =
			atomic_load_explicit(&s->progress.done, memory_order_acquire);
		while (sampler_read_record(s, &version, &r->last)) {
			CHECK(r->last.expiry_ns ==
			      s->start_ns + (int64_t)r->last.seq * s->interval_ns);
			CHECK(r->last.wake_ns >= r->last.expiry_ns);
			CHECK(version % 2 == 0);
			r->records++;
		}
		CHECK(take_window_max(&s->progress) >= 0);
	}
	return NULL;
}

static void a_new_maximum_is_read_whole(void)
{
	for (int run = 0; run < 20; run++) {
		struct sampler *s = prepare_one(-1);
		struct reader r = { .sampler = s };

		s->interval_ns = INTERVAL_NS / 10;
		let_go(s, clock_now_ns(), 60);
		CHECK(pthread_create(&r.thread, NULL, read_all_the_time, &r) == 0);
		CHECK(pthread_join(r.thread, NULL) == 0);
		join(s);
		check_sums(s);
		CHECK(r.records >= 1);
		CHECK(memcmp(&r.last, &s->worst.entry[0], sizeof(r.last)) == 0);
		sampler_free(s, 1);
	}
}

static void several_threads_measure_beside_each_other(void)
{
	const unsigned int n = 3;
	struct sampler *all = sampler_alloc(n);

	CHECK(all);
	atomic_store(&stop, false);
	for (unsigned int i = 0; i < n; i++) {
		all[i].cpu = -1;
		all[i].policy = (struct policy){ .kind = POLICY_OTHER };
		all[i].interval_ns = INTERVAL_NS;
		all[i].stop = &stop;
		worst_init(&all[i].worst, WORST_MAX);
		CHECK(sampler_start(all, i, n) == 0);
	}
	for (unsigned int i = 0; i < n; i++)
		CHECK(sampler_wait_ready(&all[i], clock_now_ns() + PATIENCE_NS) ==
		      SAMPLER_READY);
	for (unsigned int i = 0; i < n; i++)
		let_go(&all[i], clock_now_ns(), 20);
	for (unsigned int i = 0; i < n; i++) {
		join(&all[i]);
		CHECK(periods(&all[i]) == 20);
		check_sums(&all[i]);
	}
	sampler_free(all, n);
}

int main(void)
{
	CHECK(sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = wake }, NULL) == 0);
	samples_and_skipped_make_up_the_grid();
	a_pinned_thread_is_where_it_should_be();
	a_late_start_skips_what_is_gone();
	each_wakeup_is_kept_in_its_period();
	the_end_of_the_grid_is_never_passed();
	an_activation_that_is_due_at_the_wake_up_is_gone();
	a_step_of_many_seconds_is_exact();
	the_sleep_behind_the_grid_is_no_switch_of_the_samples();
	a_stop_ends_the_grid_where_it_got_to();
	a_stop_before_the_go_ends_the_thread();
	a_signal_that_is_no_stop_is_counted_and_slept_over();
	a_thread_that_cannot_be_pinned_says_so();
	waiting_for_a_thread_that_does_not_run_ends();
	a_new_maximum_is_read_whole();
	several_threads_measure_beside_each_other();
	return 0;
}
