/* SPDX-License-Identifier: MIT */
/* counterdeltas: of each of the worst wake-ups the look before it and the look after it. */
#include "trace/counterdeltas.h"

#include <string.h>

#include "tests/captured.h"
#include "thread/clock.h"

static struct candidates candidates[2];
static struct counterdeltas a;

static void begin(unsigned int limit)
{
	memset(candidates, 0, sizeof(candidates));
	candidates[1].cpu = 1;
	a = (struct counterdeltas){
		.candidates = candidates,
		.samplers = 2,
		.limit = limit,
	};
	counterdeltas_round(&a);
}

static void wakes(unsigned int sampler, uint64_t seq, int64_t expiry_ns,
		  int64_t wake_ns)
{
	candidates_push(&candidates[sampler],
			(struct wakeup){ seq, expiry_ns, wake_ns });
}

static void the_looks_before_and_after_are_kept(void)
{
	int64_t now_ns;

	begin(2);
	now_ns = clock_now_ns();
	wakes(1, 5, now_ns, now_ns + 100);
	counterdeltas_round(&a);

	CHECK(a.count == 1);
	CHECK(a.kept[0].cpu == 1 && a.kept[0].wakeup.seq == 5);
	CHECK(a.kept[0].from == a.look[0] && a.kept[0].to == a.look[1]);
	CHECK(!a.kept[0].truncated);
	counterdeltas_free(&a);
}

static void the_worst_of_all_cpus_are_kept_worst_first(void)
{
	int64_t now_ns;

	begin(2);
	now_ns = clock_now_ns();
	wakes(0, 1, now_ns, now_ns + 10);
	wakes(1, 2, now_ns, now_ns + 30);
	wakes(0, 3, now_ns, now_ns + 20);
	wakes(0, 4, now_ns + 9, now_ns); /* early: none of the worst */
	counterdeltas_round(&a);

	CHECK(a.count == 2);
	CHECK(a.kept[0].wakeup.seq == 2 && a.kept[1].wakeup.seq == 3);
	counterdeltas_free(&a);
}

static void a_wakeup_from_before_the_first_look_is_told_to_be_cut(void)
{
	int64_t long_ago_ns;

	begin(2);
	long_ago_ns = a.look[0]->begin_ns - 1000;
	wakes(0, 1, long_ago_ns, clock_now_ns());
	for (int i = 0; i < 20; i++)
		counterdeltas_round(&a);

	CHECK(a.looks == COUNTERDELTAS_LOOKS);
	CHECK(a.count == 1 && a.kept[0].truncated);
	CHECK(a.kept[0].from->refs == 1); /* the window has let go of it */
	counterdeltas_free(&a);
}

static void what_changed_between_them_is_emitted(void)
{
	const char *line;
	int64_t now_ns;

	begin(1);
	now_ns = clock_now_ns();
	wakes(0, 9, now_ns, now_ns + 77);
	counterdeltas_round(&a);

	capture();
	emit_begin(&out, "x");
	counterdeltas_emit(&a, &out);
	line = capture_end();
	CHECK(strstr(line, "\"counter_deltas\":[{\"cpu\":0,\"seq\":9,"));
	CHECK(strstr(line, "\"interrupts\":["));
	CHECK(strstr(line, "\"softirqs\":["));
	CHECK(strstr(line, "\"cpu_times\":["));
	CHECK(strstr(line, "\"switches\":"));
	CHECK(strstr(line, "\"schedstat\":["));
	counterdeltas_free(&a);
}

static void at_the_end_all_that_wait_are_looked_at(void)
{
	memset(candidates, 0, sizeof(candidates));
	candidates[1].cpu = 1;
	CHECK(counterdeltas_start(&a, candidates, 2, 2) == 0);
	for (uint64_t i = 0; i < 200; i++)
		for (unsigned int s = 0; s < 2; s++)
			wakes(s, i, 1000, 1001 + (int64_t)(2 * i + s));
	counterdeltas_stop(&a);

	CHECK(a.count == 2 && a.kept[0].wakeup.wake_ns == 1001 + 399);
	counterdeltas_free(&a);
}

int main(void)
{
	the_looks_before_and_after_are_kept();
	the_worst_of_all_cpus_are_kept_worst_first();
	a_wakeup_from_before_the_first_look_is_told_to_be_cut();
	what_changed_between_them_is_emitted();
	at_the_end_all_that_wait_are_looked_at();
	return 0;
}
