/* SPDX-License-Identifier: MIT */
#include <signal.h>

#include "measure/growth.h"
#include "tests/captured.h"
#include "tests/check.h"

#define INTERVAL_NS INT64_C(100000)
#define PERIODS     5000
#define PATIENCE_NS (60 * NS_PER_S)

static struct sampler quiet;
static struct growth g;

static void begin(void)
{
	memset(&g, 0, sizeof(g));
	hist_init(&quiet.hist);
	quiet.cpu = 3;
}

static void emit(int64_t max_ns)
{
	capture();
	growth_emit(&g, &quiet, &max_ns, 1, &out);
}

/* The end of the line is put by capture_is(), as that of a tick would be. */
#define LINE(numbers, buckets)                                                         \
	"{\"type\":\"growth\",\"cpus\":[{\"cpu\":3,\"missed_periods\":0," numbers      \
	",\"histogram\":[" buckets "]}]}\n}\n"

static void only_what_is_new_is_told(void)
{
	begin();
	hist_add(&quiet.hist, 5);
	hist_add(&quiet.hist, 5);
	hist_add(&quiet.hist, 70);
	emit(70);
	CHECK(capture_is(
		LINE("\"early\":0,\"overflow\":0,\"max_ns\":70", "[5,2],[70,1]")));
	emit(0);
	CHECK(capture_is(LINE("\"early\":0,\"overflow\":0,\"max_ns\":70", "")));
	hist_add(&quiet.hist, 70);
	emit(70);
	CHECK(capture_is(LINE("\"early\":0,\"overflow\":0,\"max_ns\":70", "[70,1]")));
}

static void what_has_no_bucket_is_counted_since_the_start(void)
{
	begin();
	hist_add(&quiet.hist, -1);
	hist_add(&quiet.hist, INT64_C(1) << HIST_MAX_BITS);
	emit(INT64_C(1) << HIST_MAX_BITS);
	CHECK(capture_is(
		LINE("\"early\":1,\"overflow\":1,\"max_ns\":17179869184", "")));
	emit(0);
	CHECK(capture_is(
		LINE("\"early\":1,\"overflow\":1,\"max_ns\":17179869184", "")));
}

static void a_sample_beyond_the_maximum_is_told_with_its_maximum(void)
{
	begin();
	hist_add(&quiet.hist, 9);
	hist_add(&quiet.hist, 3000);
	emit(9);
	CHECK(capture_is(LINE("\"early\":0,\"overflow\":0,\"max_ns\":9", "[9,1]")));
	emit(3000);
	CHECK(capture_is(
		LINE("\"early\":0,\"overflow\":0,\"max_ns\":3000", "[3000,1]")));
}

static uint64_t told(void)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		count += g.told[i];
	return count;
}

/* For the thread sanitizer too: the histogram is read while its thread writes it. */
static void a_thread_at_work_is_told_to_its_last_sample(void)
{
	static _Atomic bool stop;
	struct sampler *s = sampler_alloc(1);
	int64_t max_ns = 0;
	bool done;

	CHECK(s);
	memset(&g, 0, sizeof(g));
	s->cpu = -1;
	s->policy = (struct policy){ .kind = POLICY_OTHER };
	s->interval_ns = INTERVAL_NS;
	s->stop = &stop;
	worst_init(&s->worst, 0);
	CHECK(sampler_start(s, 0, 1) == 0);
	CHECK(sampler_wait_ready(s, clock_now_ns() + PATIENCE_NS) == SAMPLER_READY);
	s->start_ns = clock_now_ns();
	s->end_ns = s->start_ns + PERIODS * INTERVAL_NS;
	atomic_store_explicit(&s->go, true, memory_order_release);

	do {
		done = atomic_load_explicit(&s->progress.done, memory_order_acquire);
		if (done)
			CHECK(pthread_join(s->thread, NULL) == 0);
		max_ns = take_window_max(&s->progress);
		capture();
		growth_emit(&g, s, &max_ns, 1, &out);
		capture_end();
	} while (!done);

	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		CHECK(g.told[i] == s->hist.count[i]);
	CHECK(told() + s->hist.early + s->hist.overflow == s->progress.samples);
	CHECK(g.max_ns == (s->hist.max_ns > 0 ? s->hist.max_ns : 0));
	sampler_free(s, 1);
}

static void what_is_to_be_told_first_is_everything(void)
{
	struct growth *two = growth_alloc(2);

	CHECK(two);
	CHECK(two[1].max_ns == 0 && two[1].told[HIST_BUCKETS - 1] == 0);
	free(two);
}

int main(void)
{
	signal(SIGUSR1, SIG_IGN);
	only_what_is_new_is_told();
	what_has_no_bucket_is_counted_since_the_start();
	a_sample_beyond_the_maximum_is_told_with_its_maximum();
	a_thread_at_work_is_told_to_its_last_sample();
	what_is_to_be_told_first_is_everything();
	return 0;
}
