/*
 * LVGL's widgets demo at a real-time priority, without a display: lvgl FRAMES
 *
 * Every 33 ms LVGL draws what changed, and the pixels go nowhere. At the end it prints
 * for each frame how late it began, and when it was ready, by its own clock, in ns.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "demos/lv_demos.h"
#include "lvgl.h"

#define WIDTH 480
#define HEIGHT 320
#define LINES 32
#define PERIOD_NS 33000000ll
#define NS_PER_S 1000000000ll
#define MOST 10000
#define PRIORITY 50

static uint8_t pixels[2][WIDTH * LINES * 2];
static int64_t began_ns[MOST], ready_ns[MOST];
static long drawn;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static uint32_t now_ms(void)
{
	return now_ns() / 1000000;
}

static void forget(lv_display_t *display, const lv_area_t *area, uint8_t *content)
{
	(void)content;
	drawn += lv_area_get_size(area);
	lv_display_flush_ready(display);
}

int main(int argc, char **argv)
{
	long frames = argc > 1 ? strtol(argv[1], NULL, 10) : 300;
	struct sched_param param = { .sched_priority = PRIORITY };
	lv_display_t *display;
	int64_t due;

	if (frames < 1 || frames > MOST)
		return 2;
	lv_init();
	lv_tick_set_cb(now_ms);
	display = lv_display_create(WIDTH, HEIGHT);
	lv_display_set_flush_cb(display, forget);
	lv_display_set_buffers(display, pixels[0], pixels[1], sizeof(pixels[0]),
			       LV_DISPLAY_RENDER_MODE_PARTIAL);
	lv_demo_widgets();
	lv_demo_widgets_start_slideshow();
	mlockall(MCL_CURRENT | MCL_FUTURE);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
	due = (now_ns() / PERIOD_NS + 2) * PERIOD_NS;
	for (long frame = 0; frame < frames; frame++, due += PERIOD_NS) {
		struct timespec at = { due / NS_PER_S, due % NS_PER_S };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		began_ns[frame] = now_ns() - due;
		lv_timer_handler();
		ready_ns[frame] = now_ns() - due;
	}
	for (long frame = 0; frame < frames; frame++)
		printf("%lld %lld\n", (long long)began_ns[frame],
		       (long long)ready_ns[frame]);
	printf("pixels %ld\n", drawn);
	return 0;
}
