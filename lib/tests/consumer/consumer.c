/* SPDX-License-Identifier: MIT */
/* A user's program in C: three cycles, the latest value, a log. 0 if all was right. */
#include <rtscope_handover.h>
#include <rtscope_task.h>

static char storage[RTSC_LATEST_BYTES(sizeof(long), 1)];
static struct rtsc_latest latest;
static struct rtsc_log *log_of;

static void control(struct rtsc_task *task, void *arg)
{
	struct rtsc_cycle cycle;
	long *cycles = (long *)arg;

	while (*cycles < 3 && rtsc_wait(task, &cycle)) {
		++*cycles;
		rtsc_latest_write(&latest, cycles);
		rtsc_log_print(log_of, "cycle %ld", *cycles);
	}
}

int main(void)
{
	struct rtsc_setup setup = { .heap_bytes = RTSC_NONE,
				    .main_stack_bytes = RTSC_NONE,
				    .unlocked = true,
				    .private_statistics = true };
	struct rtsc_config config = { .name = "control", .period_ns = 1000000 };
	struct rtsc_report report = { 0 };
	struct rtsc_task *task;
	struct rtsc *app;
	long cycles = 0, seen = 0;

	if (rtsc_latest_init(&latest, storage, sizeof(storage), sizeof(long), 1) ||
	    rtsc_log_open(&log_of, NULL) || rtsc_open(&app, &setup, &report) ||
	    rtsc_start(app, &config, control, &cycles, &task, &report))
		return 1;
	rtsc_go(app);
	rtsc_join(task);
	rtsc_close(app);
	rtsc_log_close(log_of);
	return rtsc_latest_read(&latest, 0, &seen) == 3 && seen == 3 ? 0 : 1;
}
