/* SPDX-License-Identifier: MIT */
/*
 * task CPU COUNT - the cycle of lib/rtscope_task, with all of its statistics: as bare,
 * FIFO 99 on one CPU, every INTERVAL_NS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rtscope_task.h"

static void cycle(struct rtsc_task *task, void *arg)
{
	const uint64_t count = *(const uint64_t *)arg;
	struct rtsc_cycle now;

	while (rtsc_wait(task, &now))
		if (now.number + 1 == count)
			rtsc_stop(task);
}

int main(int argc, char **argv)
{
	uint64_t count = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	struct rtsc_config config = { .name = "cycle",
				      .policy = RTSC_POLICY_FIFO,
				      .priority = 99,
				      .period_ns = INTERVAL_NS };
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	struct rtsc *app;
	struct rtsc_slot slot;

	if (count < 1) {
		fprintf(stderr, "usage: task CPU COUNT\n");
		return 2;
	}
	config.cpus = argv[1];
	if (rtsc_open(&app, NULL, &report) ||
	    rtsc_start(app, &config, cycle, &count, &task, &report)) {
		rtsc_report_print(&report, STDERR_FILENO);
		return 3;
	}
	rtsc_go(app);
	rtsc_join(task);
	if (!rtsc_snapshot(rtsc_statistics(task), &slot) || slot.cycles != count)
		return 4;
	printf("%llu cycles, %llu late\n", (unsigned long long)slot.cycles,
	       (unsigned long long)slot.overruns);
	rtsc_close(app);
	return 0;
}
