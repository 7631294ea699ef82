/* SPDX-License-Identifier: MIT */
/* Which samples are rare, and that none is lost to a second that ends meanwhile. */
#include "measure/sampler.h"

#include <pthread.h>
#include <string.h>

#include "tests/check.h"

#define INTERVAL_NS INT64_C(1000000)
#define ROUNDS      2000
#define FEEDS       16

static struct sampler *prepare(unsigned int worst)
{
	struct sampler *s = sampler_alloc(1);

	CHECK(s);
	hist_init(&s->hist);
	worst_init(&s->worst, worst);
	s->interval_ns = INTERVAL_NS;
	return s;
}

/* As the loops do. Returns whether it was rare. */
static bool feed(struct sampler *s, int64_t latency_ns)
{
	bool rare = take_is_rare(s, latency_ns);

	if (rare)
		take_rare(s, &(struct wakeup){ 1, 1000, 1000 + latency_ns });
	else
		take_usual(s, latency_ns);
	return rare;
}

static void a_maximum_of_its_second_is_rare_and_what_is_below_is_not(void)
{
	struct sampler *s = prepare(0);

	CHECK(feed(s, 5000) && !feed(s, 5000) && !feed(s, 0) && feed(s, 5001));
	CHECK(take_window_max(&s->progress) == 5001);
	CHECK(feed(s, 300) && !feed(s, 299) && feed(s, 301));
	CHECK(take_window_max(&s->progress) == 301);
	CHECK(take_window_max(&s->progress) == 0);
	CHECK(feed(s, 0) && take_window_max(&s->progress) == 0);
	CHECK(s->hist.max_ns == 5001 && s->hist.min_ns == 0);
	CHECK(s->progress.samples == 8);
	sampler_free(s, 1);
}

static void each_of_the_worst_is_rare_whatever_its_second_had(void)
{
	struct sampler *s = prepare(2);

	CHECK(feed(s, 0) && feed(s, 100) && !feed(s, 0));
	CHECK(feed(s, 900) && feed(s, 901));
	CHECK(feed(s, 800) == false); /* two were worse */
	take_window_max(&s->progress);
	feed(s, 5000);
	CHECK(feed(s, 902)); /* below the maximum of its second */
	CHECK(s->worst.entry[0].wake_ns == 6000 && s->worst.entry[1].wake_ns == 1902);
	sampler_free(s, 1);
}

static void what_is_early_or_as_long_as_an_interval_is_rare(void)
{
	struct sampler *s = prepare(0);

	feed(s, INTERVAL_NS * 2);
	CHECK(feed(s, -1) && feed(s, INTERVAL_NS) && !feed(s, INTERVAL_NS - 1));
	CHECK(s->hist.early == 1 && s->overruns == 2 && s->progress.samples == 4);
	s->interval_ns = INT64_MAX;
	feed(s, INT64_C(1) << 33);
	CHECK(feed(s, INT64_C(1) << 32) && !feed(s, UINT32_MAX));
	sampler_free(s, 1);
}

struct feeder {
	struct sampler *s;
	pthread_barrier_t begin, end;
	int64_t largest_ns;
};

static void *feed_rounds(void *arg)
{
	struct feeder *f = arg;

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&f->begin);
		f->largest_ns = 0;
		for (int i = 1; i <= FEEDS; i++) {
			int64_t ns = (round * 37 + i * i * 11) % 997 + 1;

			feed(f->s, ns);
			f->largest_ns = ns > f->largest_ns ? ns : f->largest_ns;
		}
		pthread_barrier_wait(&f->end);
	}
	return NULL;
}

static void no_maximum_is_lost_while_it_is_taken(void)
{
	struct feeder f = { .s = prepare(0) };
	pthread_t thread;

	CHECK(pthread_barrier_init(&f.begin, NULL, 2) == 0);
	CHECK(pthread_barrier_init(&f.end, NULL, 2) == 0);
	CHECK(pthread_create(&thread, NULL, feed_rounds, &f) == 0);
	for (int round = 0; round < ROUNDS; round++) {
		int64_t seen_ns = 0;

		pthread_barrier_wait(&f.begin);
		for (int i = 0; i < FEEDS; i++) {
			int64_t ns = take_window_max(&f.s->progress);

			seen_ns = ns > seen_ns ? ns : seen_ns;
		}
		pthread_barrier_wait(&f.end);
		int64_t rest_ns = take_window_max(&f.s->progress);

		CHECK((rest_ns > seen_ns ? rest_ns : seen_ns) == f.largest_ns);
		CHECK(take_is_rare(f.s, 0)); /* the next second has its own */
	}
	CHECK(pthread_join(thread, NULL) == 0);
	sampler_free(f.s, 1);
}

int main(void)
{
	a_maximum_of_its_second_is_rare_and_what_is_below_is_not();
	each_of_the_worst_is_rare_whatever_its_second_had();
	what_is_early_or_as_long_as_an_interval_is_rare();
	no_maximum_is_lost_while_it_is_taken();
	return 0;
}
