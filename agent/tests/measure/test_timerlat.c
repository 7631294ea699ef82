/* SPDX-License-Identifier: MIT */
/* Reports as the kernel writes them, and a loop that reads them from a pipe. */
#include "measure/timerlat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

#define MS INT64_C(1000000)

static void a_latency_has_its_number_and_its_context(void)
{
	const char *text =
		"          <idle>-0       [000] d.h1.     4.710152: #1     context    "
		"irq timer_latency      3102 ns\n"
		"CPU:0 [LOST 3 EVENTS]\n"
		"      timerlat/0-180     [000] ....1    14.000001: #12345 context "
		"thread timer_latency     18265 ns\n"
		"      timerlat/0-180     [000] ....1    14.000009: #12345 context "
		"  user timer_latency     19265 ns\n"
		"          <idle>-0       [000] d.h1.     4.71";
	const char *rest = text;
	struct timerlat_report r;

	CHECK(timerlat_parse(&rest, &r) && !r.is_thread && r.number == 1);
	CHECK(r.at_ns == INT64_C(4710152000) && r.latency_ns == 3102);
	CHECK(timerlat_parse(&rest, &r) && r.is_thread && r.number == 12345);
	CHECK(r.at_ns == INT64_C(14000001000) && r.latency_ns == 18265);
	CHECK(!timerlat_parse(&rest, &r));
	CHECK(strncmp(rest, "          <idle>", 16) == 0); /* its end comes later */
}

static void lines_of_others_are_no_reports(void)
{
	static const char *const others[] = {
		"",
		"\n",
		"# tracer: timerlat\n",
		"x [000] ....1 4.710152: #1 context thread\n",
		"x [000] ....1 4.710152: #1 context thread timer_latency\n",
		"x [000] ....1 4.710152: #1 context thread timer_latency -5 ns\n",
		"x [000] ....1 471: #1 context irq timer_latency 5 ns\n",
		"x [000] ....1 4.710152: #1 inner/outer(us): 1/2\n",
		"x [000] ....1 4.710152: #\n1 context irq timer_latency 5 ns\n",
	};
	struct timerlat_report r;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const char *rest = others[i];

		CHECK(!timerlat_parse(&rest, &r));
	}
}

static struct sampler *prepare(int fd[2])
{
	struct sampler *s = sampler_alloc(1);
	static _Atomic bool stop;

	CHECK(s && pipe2(fd, O_NONBLOCK) == 0);
	hist_init(&s->hist);
	worst_init(&s->worst, WORST_MAX);
	s->timerlat = timerlat_alloc(1);
	CHECK(s->timerlat);
	s->stop = &stop;
	s->reports_fd = fd[0];
	s->interval_ns = MS;
	s->start_ns = clock_now_ns() / 1000 * 1000;
	s->end_ns = s->start_ns + 6 * MS;
	return s;
}

static void report(int fd, const char *context, unsigned int number, int64_t due_ns,
		   int64_t latency_ns)
{
	int64_t at_ns = due_ns + latency_ns;

	CHECK(dprintf(fd,
		      "x-1 [000] d.h1. %lld.%06lld: #%u context %6s timer_latency "
		      "%9lld ns\n",
		      (long long)(at_ns / NS_PER_S),
		      (long long)(at_ns % NS_PER_S / 1000), number, context,
		      (long long)latency_ns) > 0);
}

/* The kernel's grid is not the run's: the first timer is due half a period later. */
static void both_parts_of_each_latency_are_kept(void)
{
	int fd[2];
	struct sampler *s = prepare(fd);
	int64_t due_ns = s->start_ns + MS / 2;
	const struct timerlat *t = s->timerlat;

	report(fd[1], "irq", 7, due_ns - MS, 3000); /* before the run */
	report(fd[1], "thread", 7, due_ns - MS, 9000);
	report(fd[1], "irq", 8, due_ns, 3000);
	report(fd[1], "thread", 8, due_ns, 8000);
	report(fd[1], "irq", 9, due_ns + MS, 4000);
	report(fd[1], "thread", 9, due_ns + MS, MS + 5000); /* over the next one */
	report(fd[1], "thread", 11, due_ns + 3 * MS, 5000); /* its interrupt is lost */
	report(fd[1], "irq", 12, due_ns + 4 * MS, 1000);
	report(fd[1], "thread", 12, due_ns + 4 * MS, 7000);
	report(fd[1], "thread", 12, due_ns + 4 * MS, 7000); /* doubled */
	report(fd[1], "irq", 14, due_ns + 6 * MS, 1000);    /* after the run */
	report(fd[1], "thread", 14, due_ns + 6 * MS, 7000);
	timerlat_until_end(s);

	CHECK(s->progress.samples == 3 && s->progress.missed_periods == 3);
	CHECK(s->overruns == 1 && s->missed_periods_sum_ns.low == 5000);
	CHECK(s->hist.min_ns == 7000 && s->hist.max_ns == MS + 5000);
	CHECK(t->before.min_ns == 1000 && t->before.max_ns == 4000);
	CHECK(t->before.sum_ns.low == 8000);
	CHECK(t->thread.sum_ns.low == s->hist.sum_ns.low - 8000);
	CHECK(s->worst.count == 3 && s->worst.entry[0].seq == 2);
	CHECK(s->worst.entry[2].seq == 5 || s->worst.entry[1].seq == 5);
	close(fd[0]);
	close(fd[1]);
	sampler_free(s, 1);
}

int main(void)
{
	a_latency_has_its_number_and_its_context();
	lines_of_others_are_no_reports();
	both_parts_of_each_latency_are_kept();
	return 0;
}
