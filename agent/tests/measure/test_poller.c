/* SPDX-License-Identifier: MIT */
/* A real thread that polls. A signal handler in it makes the gap that must be seen. */
#include <signal.h>

#include "measure/poller.h"
#include "tests/check.h"

#define INTERVAL_NS INT64_C(1000000)
#define GAP_NS      (5 * INTERVAL_NS)
#define PATIENCE_NS (60 * NS_PER_S)

static _Atomic bool stop;
static _Atomic int64_t from_ns, to_ns;

static void make_gap(int signo)
{
	int64_t begin_ns = clock_now_ns();

	(void)signo;
	while (clock_now_ns() < begin_ns + GAP_NS)
		;
	atomic_store(&to_ns, clock_now_ns());
	atomic_store(&from_ns, begin_ns); /* last: both are there */
}

static struct sampler *begin(int64_t intervals)
{
	struct sampler *s = sampler_alloc(1);

	CHECK(s);
	atomic_store(&stop, false);
	atomic_store(&from_ns, 0);
	s->cpu = -1;
	s->policy = (struct policy){ .kind = POLICY_OTHER };
	s->interval_ns = INTERVAL_NS;
	s->stop = &stop;
	s->loop = poller_until_end;
	worst_init(&s->worst, WORST_MAX);
	CHECK(sampler_start(s, 0, 1) == 0);
	CHECK(sampler_wait_ready(s, clock_now_ns() + PATIENCE_NS) == SAMPLER_READY);
	s->start_ns = clock_now_ns() + INTERVAL_NS;
	s->end_ns = s->start_ns + intervals * INTERVAL_NS;
	atomic_store_explicit(&s->go, true, memory_order_release);
	return s;
}

static void wait_for_samples(struct sampler *s, uint64_t count)
{
	while (atomic_load(&s->progress.samples) < count)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static void check_sums(const struct sampler *s)
{
	const uint64_t samples = atomic_load(&s->progress.samples);
	uint64_t counted = 0;

	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		counted += s->hist.count[i];
	CHECK(counted == samples);
	CHECK(s->hist.min_ns >= 0);
	CHECK(samples + atomic_load(&s->progress.missed_periods) ==
	      (uint64_t)((s->end_ns - s->start_ns) / s->interval_ns));
}

static void each_period_has_its_longest_gap(void)
{
	struct sampler *s = begin(100);

	sampler_join(s);

	CHECK(s->usage.voluntary_switches == 0); /* it never sleeps */
	CHECK(s->worst.entry[0].wake_ns - s->worst.entry[0].expiry_ns ==
	      s->hist.max_ns);
	check_sums(s);
	sampler_free(s, 1);
}

static void a_gap_of_several_periods_is_one_sample_and_the_rest_is_missed(void)
{
	struct sampler *s = begin(INT64_C(1) << 40);
	bool found = false;

	wait_for_samples(s, 3);
	sampler_wake(s); /* SIGUSR1 */
	while (!atomic_load(&from_ns))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	wait_for_samples(s, atomic_load(&s->progress.samples) + 2);
	atomic_store(&stop, true);
	sampler_join(s);

	for (unsigned int k = 0; k < s->worst.count; k++)
		found |= s->worst.entry[k].expiry_ns <= atomic_load(&from_ns) &&
			 s->worst.entry[k].wake_ns >= atomic_load(&to_ns);
	CHECK(found);
	CHECK(s->overruns >= 1);
	CHECK(atomic_load(&s->progress.missed_periods) >= GAP_NS / INTERVAL_NS - 1);
	check_sums(s);
	sampler_free(s, 1);
}

static void one_that_is_stopped_ends_with_a_period(void)
{
	struct sampler *s = begin(INT64_C(1) << 40);

	wait_for_samples(s, 2);
	atomic_store(&stop, true);
	sampler_join(s);

	CHECK((s->end_ns - s->start_ns) % s->interval_ns == 0);
	check_sums(s);
	sampler_free(s, 1);
}

int main(void)
{
	struct sigaction action = { .sa_handler = make_gap };

	sigaction(SIGUSR1, &action, NULL);
	each_period_has_its_longest_gap();
	a_gap_of_several_periods_is_one_sample_and_the_rest_is_missed();
	one_that_is_stopped_ends_with_a_period();
	return 0;
}
