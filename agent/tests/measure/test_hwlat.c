/* SPDX-License-Identifier: MIT */
/* Reports as the kernel writes them, and a loop that reads them from a pipe. */
#include "measure/hwlat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

#define LINE(flags, time, gaps)                                                        \
	"          hwlatd-182     [001] " flags "     " time ": #1     "               \
	"inner/outer(us):    " gaps "     ts:1767225607.060611065 count:192\n"

static void the_longer_of_two_gaps_is_reported_with_its_time(void)
{
	const char *text =
		LINE("dn...", "5.419835", "4/5") "CPU:1 [LOST 3 EVENTS]\n" LINE(
			"d....", "16.000001", "1234567/0");
	struct hwlat_report r;

	CHECK(hwlat_parse(&text, &r));
	CHECK(r.at_ns == 5419835000 && r.gap_ns == 5000);
	CHECK(hwlat_parse(&text, &r));
	CHECK(r.at_ns == 16000001000 && r.gap_ns == INT64_C(1234567000));
	CHECK(!hwlat_parse(&text, &r));
}

static void what_is_no_report_is_left_out(void)
{
	static const char *const none[] = {
		"",
		"\n",
		LINE("d....", "5", "4/5"),
		LINE("d....", "5.41983", "4/5"),
		LINE("d....", "", "4/5"),
		LINE("d....", "5.419835", "4"),
		"inner/outer(us): 4/5\n",
		"inner/outer(us): 4/5 5.419835: #1\n",
		LINE("d....", "5.419835", "-4/-5"),
	};
	const char *cut = "hwlatd-182 [001] d.... 5.419835: #1 inner/outer(us): 4/5 t";
	struct hwlat_report r;

	CHECK(!hwlat_parse(&cut, &r));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		char both[512];
		const char *text = none[i];

		CHECK(!hwlat_parse(&text, &r));
		snprintf(both, sizeof(both), "%s\n%s", none[i],
			 LINE("d....", "7.000000", "8/2"));
		text = both;
		CHECK(hwlat_parse(&text, &r));
		CHECK(r.at_ns == 7 * NS_PER_S && r.gap_ns == 8000);
	}
}

static void report(int fd, int64_t at_ns, int gap_us)
{
	char line[256];
	int size = snprintf(line, sizeof(line),
			    "hwlatd-1 [000] d.... %lld.%06lld: #1 inner/outer(us): "
			    "%d/0 ts:1.0 count:1\n",
			    (long long)(at_ns / NS_PER_S),
			    (long long)(at_ns % NS_PER_S / 1000), gap_us);

	CHECK(write(fd, line, (size_t)size) == size);
}

static void a_period_has_its_longest_hole_or_none(void)
{
	struct sampler *s = sampler_alloc(1);
	_Atomic bool stop = false;
	int fd[2];

	CHECK(s && pipe2(fd, O_NONBLOCK) == 0);
	hist_init(&s->hist);
	worst_init(&s->worst, WORST_MAX);
	s->stop = &stop;
	s->reports_fd = fd[0];
	s->interval_ns = 10000000;
	s->start_ns = clock_now_ns();
	s->end_ns = s->start_ns + 3 * s->interval_ns;
	report(fd[1], s->start_ns - 2000, 99); /* before the run */
	report(fd[1], s->start_ns + 2000, 20);
	report(fd[1], s->start_ns + 4000, 30);
	report(fd[1], s->start_ns + 6000, 25);
	hwlat_until_end(s);

	CHECK(s->progress.samples == 1 && s->silent == 2 && s->overruns == 0);
	CHECK(s->hist.min_ns == 30000 && s->hist.max_ns == 30000);
	CHECK(s->worst.count == 1 && s->worst.entry[0].seq == 1);
	CHECK(s->worst.entry[0].wake_ns - s->worst.entry[0].expiry_ns == 30000);
	CHECK(s->end_ns == s->start_ns + 3 * s->interval_ns);

	stop = true;
	s->start_ns = s->end_ns;
	s->end_ns += 100 * s->interval_ns;
	hwlat_until_end(s);
	CHECK(s->silent == 3 && s->end_ns == s->start_ns + s->interval_ns);
	close(fd[0]);
	close(fd[1]);
	sampler_free(s, 1);
}

int main(void)
{
	the_longer_of_two_gaps_is_reported_with_its_time();
	what_is_no_report_is_left_out();
	a_period_has_its_longest_hole_or_none();
	return 0;
}
