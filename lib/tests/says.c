/* SPDX-License-Identifier: MIT */
/*
 * says - a program with two tasks that prints its own statistics, as the library reads
 * them, for a reader of the shared page to be compared with. It waits for the end of its
 * standard input before it ends; "says keep" leaves the file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../rtscope_task.h"

#define CYCLES    40
#define PERIOD_NS 2000000

static void compute(long ms)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 +
			 (now.tv_nsec - begin.tv_nsec) / 1000000 <
		 ms);
}

/* Every tenth cycle lasts for more than two periods. */
static void cycle(struct rtsc_task *task, void *arg)
{
	struct rtsc_cycle now;

	(void)arg;
	for (int i = 0; i < CYCLES && rtsc_wait(task, &now); i++)
		if (i % 10 == 9)
			compute(5);
}

static void say_hist(const char *name, const struct rtsc_hist *h)
{
	printf(", \"%s\": {\"count\": %" PRIu64 ", \"early\": %" PRIu64
	       ", \"overflow\": %" PRIu64 ", \"min_ns\": %" PRIu64
	       ", \"max_ns\": %" PRIu64 ", \"sum_ns\": %" PRIu64 ", \"buckets\": [",
	       name, h->count, h->early, h->overflow, h->min_ns, h->max_ns, h->sum_ns);
	for (unsigned int b = 0, n = 0; b < RTSC_BUCKETS; b++)
		if (h->bucket[b])
			printf("%s[%" PRIu64 ", %" PRIu64 "]", n++ ? ", " : "",
			       rtsc_bucket_low_ns(b), h->bucket[b]);
	printf("]}");
}

static int say(const struct rtsc_task *task)
{
	struct rtsc_slot s;

	if (!rtsc_snapshot(rtsc_statistics(task), &s))
		return 1;
	printf("{\"tid\": %" PRIu64 ", \"name\": \"%s\", \"state\": %" PRIu64
	       ", \"period_ns\": %" PRIu64 ", \"offset_ns\": %" PRIu64
	       ", \"deadline_ns\": %" PRIu64,
	       s.tid, s.name, s.state, s.period_ns, s.offset_ns, s.deadline_ns);
	printf(", \"cycles\": %" PRIu64 ", \"missed\": %" PRIu64
	       ", \"overruns\": %" PRIu64 ", \"skipped\": %" PRIu64
	       ", \"minor_faults\": %" PRIu64 ", \"major_faults\": %" PRIu64
	       ", \"voluntary_switches\": %" PRIu64
	       ", \"involuntary_switches\": %" PRIu64,
	       s.cycles, s.missed, s.overruns, s.skipped, s.minor_faults,
	       s.major_faults, s.voluntary_switches, s.involuntary_switches);
	printf(", \"usage_cycle\": %" PRIu64 ", \"usage_ns\": %" PRIu64, s.usage_cycle,
	       s.usage_ns);
	printf(", \"number\": %" PRIu64 ", \"in_cycle\": %" PRIu64, s.number,
	       s.in_cycle);
	say_hist("latency", &s.latency);
	say_hist("execution", &s.execution);
	say_hist("response", &s.response);
	say_hist("jitter", &s.jitter);
	printf("}\n");
	return 0;
}

int main(int argc, char **argv)
{
	const struct rtsc_setup setup = { .unlocked = true,
					  .keep_statistics = argc > 1 &&
							     !strcmp(argv[1], "keep") };
	struct rtsc_config config = { .policy = RTSC_POLICY_OTHER,
				      .period_ns = PERIOD_NS };
	struct rtsc_report report = { 0 };
	struct rtsc_task *first, *second;
	struct rtsc *app;
	char end;

	if (rtsc_open(&app, &setup, &report))
		return 1;
	config.name = "first";
	if (rtsc_start(app, &config, cycle, NULL, &first, &report))
		return 2;
	config.name = "second";
	config.offset_ns = PERIOD_NS / 4;
	config.deadline_ns = PERIOD_NS / 2;
	config.overrun = RTSC_OVERRUN_CATCH_UP;
	if (rtsc_start(app, &config, cycle, NULL, &second, &report))
		return 2;
	rtsc_go(app);
	rtsc_join(first);
	rtsc_join(second);
	if (say(first) || say(second))
		return 3;
	fflush(stdout);
	while (read(STDIN_FILENO, &end, 1) > 0)
		;
	rtsc_close(app);
	return 0;
}
