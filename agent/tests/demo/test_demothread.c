/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "demo/demothread.h"
#include "tests/check.h"
#include "thread/clock.h"

#define MS INT64_C(1000000)

/* Of 1 MiB at the least: no machine's pages have more than 64 KiB. */
#define PAGES 16

/* The code is not locked here, and a sanitizer has memory of its own. */
#ifdef __SANITIZE_ADDRESS__
#define OWN_FAULTS 8
#else
#define OWN_FAULTS 2
#endif

static struct demo_stage stage;
static struct demo_thread *all;
static unsigned int count;

static void until(_Atomic bool *done)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	/* acquire: pairs with the thread's release of done */
	while (!atomic_load_explicit(done, memory_order_acquire))
		nanosleep(&pause, NULL);
}

static void start(unsigned int n, const char *const scripts[])
{
	struct cpulist usable;

	CHECK(cpulist_get_affinity(&usable) == 0);
	memset(&stage, 0, sizeof(stage));
	stage.cpu = cpulist_next(&usable, 0);
	stage.cpus = usable;
	for (int i = 0; i < DEMOSCRIPT_LOCKS; i++)
		CHECK(pthread_mutex_init(&stage.lock[i], NULL) == 0);
	count = n;
	all = demothread_alloc(n);
	CHECK(all);
	for (unsigned int i = 0; i < n; i++) {
		CHECK(demoscript_parse(scripts[i], &all[i].script) == 0);
		all[i].stage = &stage;
		CHECK(demothread_start(all, i, n) == 0);
	}
	for (unsigned int i = 0; i < n; i++)
		while (atomic_load_explicit(&all[i].state, memory_order_acquire) ==
		       DEMO_STARTING)
			clock_sleep_until(&(struct timespec){ 0 });
	stage.start_ns = clock_now_ns();
	/* release: pairs with the threads' acquire of go */
	atomic_store_explicit(&stage.go, true, memory_order_release);
}

static void end(void)
{
	for (unsigned int i = 0; i < count; i++) {
		until(&all[i].done);
		CHECK(pthread_join(all[i].thread, NULL) == 0);
	}
}

/* The first event of a kind; fails if there is none. */
static const struct demo_event *event(const struct demo_thread *t,
				      enum demo_event_kind kind)
{
	for (unsigned int i = 0; i < t->events; i++)
		if (t->event[i].kind == kind)
			return &t->event[i];
	CHECK(!"an event of this kind");
	return NULL;
}

static unsigned int events(const struct demo_thread *t, enum demo_event_kind kind)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->events; i++)
		n += t->event[i].kind == kind;
	return n;
}

static void a_thread_follows_its_script_and_notes_it(void)
{
	static const char *const scripts[] = { "a:other:0:at=2000000,run=3500000" };
	const struct demo_event *woke, *done;
	int64_t ran_ns = 0;

	start(1, scripts);
	end();
	woke = event(all, DEMO_EVENT_WOKE);
	done = event(all, DEMO_EVENT_DONE);
	CHECK(all->got.kind == POLICY_OTHER && all->tid > 0);
	CHECK(cpulist_count(&all->affinity) == 1 &&
	      cpulist_has(&all->affinity, (unsigned int)stage.cpu));
	CHECK(woke->value == 2 * MS && woke->at_ns >= 2 * MS && woke->step == 0);
	CHECK(events(all, DEMO_EVENT_UNIT) == 3);
	CHECK(done->value == 0 && done->step == 2 && done->at_ns >= 5 * MS);
	CHECK(all->usage.cpu_time_ns >= 3500000);
	for (unsigned int i = 0; i < all->events; i++) {
		const struct demo_event *e = &all->event[i];

		CHECK(e->kind != DEMO_EVENT_RAN || e->value >= e->at_ns);
		if (e->kind == DEMO_EVENT_RAN)
			ran_ns += e->value - e->at_ns;
	}
	CHECK(ran_ns > 0 && ran_ns <= done->at_ns);
	demothread_free(all, 1);
}

static bool one_had_the_mutex_after_the_other(void)
{
	int64_t left_ns[2], got_ns[2];

	for (int i = 0; i < 2; i++) {
		got_ns[i] = event(&all[i], DEMO_EVENT_GOT)->at_ns;
		left_ns[i] = event(&all[i], DEMO_EVENT_LEFT)->at_ns;
		CHECK(event(&all[i], DEMO_EVENT_WANT)->at_ns <= got_ns[i]);
		CHECK(got_ns[i] <= left_ns[i]);
	}
	return left_ns[0] <= got_ns[1] || left_ns[1] <= got_ns[0];
}

static void a_mutex_has_one_owner_at_a_time(void)
{
	static const char *const scripts[] = {
		"a:other:0:at=0,lock=1,run=5000000,sleep=5000000,unlock=1",
		"b:other:0:at=1000000,lock=1,run=1000000,unlock=1",
	};

	start(2, scripts);
	end();
	CHECK(one_had_the_mutex_after_the_other());
	demothread_free(all, 2);
}

static void a_loop_repeats_and_a_grid_has_multiples(void)
{
	static const char *const scripts[] = {
		"a:other:0:at=0,loop=4,every=2000000,next"
	};
	int64_t before_ns = 0;

	start(1, scripts);
	end();
	CHECK(events(all, DEMO_EVENT_WOKE) == 5);
	for (unsigned int i = 1; i < 5; i++) {
		const struct demo_event *e = &all->event[i];

		CHECK(e->value % (2 * MS) == 0 && e->value > before_ns);
		CHECK(e->at_ns >= e->value);
		before_ns = e->value;
	}
	demothread_free(all, 1);
}

static void new_memory_has_faults_and_a_pool_has_none(void)
{
	static const char *const scripts[] = {
		"a:other:0:at=0,touch=1048576,pool=1048576,alloc=1048576"
	};
	int64_t least = INT64_MAX;

	/* a machine that is short of memory may take pages away and have them back */
	for (int run = 0; run < 100 && least > OWN_FAULTS; run++) {
		int64_t faults[3] = { 0 };
		unsigned int n = 0;

		start(1, scripts);
		end();
		for (unsigned int i = 0; i < all->events; i++)
			if (all->event[i].kind == DEMO_EVENT_FAULTS)
				faults[n++] = all->event[i].value;
		CHECK(n == 3 && events(all, DEMO_EVENT_TOOK) == 3);
		CHECK(faults[0] >= PAGES);
		least = faults[1] < least ? faults[1] : least;
		demothread_free(all, 1);
	}
	CHECK(least <= OWN_FAULTS);
}

static void one_that_is_stopped_gives_back_what_it_locked(void)
{
	static const char *const scripts[] = {
		"a:other:0:at=0,lock=0,run=20000000000,unlock=0,run=20000000000",
		"b:other:0:at=1000000,lock=0,unlock=0",
	};
	const struct timespec pause = { .tv_nsec = 1000000 };

	start(2, scripts);
	while (pthread_mutex_trylock(&stage.lock[0]) == 0) { /* nobody has it yet */
		pthread_mutex_unlock(&stage.lock[0]);
		nanosleep(&pause, NULL);
	}
	atomic_store_explicit(&stage.stop, true, memory_order_relaxed);
	end();
	CHECK(event(&all[0], DEMO_EVENT_DONE)->value == 1);
	CHECK(one_had_the_mutex_after_the_other());
	demothread_free(all, 2);
}

static void events_without_room_are_counted(void)
{
	static const char *const scripts[] = {
		"a:other:0:at=0,loop=3001,lock=0,unlock=0,next"
	};

	start(1, scripts);
	end();
	/* a wake-up, three events in each loop, and the end */
	CHECK(all->events == DEMO_MAX_EVENTS);
	CHECK(all->events_lost == 1 + 3 * 3001 + 1 - DEMO_MAX_EVENTS);
	CHECK(all->event[DEMO_MAX_EVENTS - 1].kind == DEMO_EVENT_DONE);
	demothread_free(all, 1);
}

int main(void)
{
	a_thread_follows_its_script_and_notes_it();
	a_mutex_has_one_owner_at_a_time();
	a_loop_repeats_and_a_grid_has_multiples();
	new_memory_has_faults_and_a_pool_has_none();
	one_that_is_stopped_gives_back_what_it_locked();
	events_without_room_are_counted();
	return 0;
}
