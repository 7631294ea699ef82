/* SPDX-License-Identifier: MIT */
/* The latest value, the queue and the log: by rule, and by two threads that race. */
#include "../rtscope_handover.c"

#include "check.h"

#define ROUNDS (emulated ? 20000 : 300000)

static bool emulated;

/* Each word says the same: a torn value would have two. */
struct words {
	uint64_t word[9];
};

static char storage[RTSC_LATEST_BYTES(sizeof(struct words), 3)];
static struct rtsc_latest latest;
static struct rtsc_queue queue;
static bool ended;

static struct words words_of(uint64_t n)
{
	struct words v;

	for (size_t i = 0; i < 9; i++)
		v.word[i] = n;
	return v;
}

static void a_reader_gets_nothing_before_the_first_value(void)
{
	struct words v = words_of(77), w = words_of(5);

	CHECK(rtsc_latest_init(&latest, storage + 1, sizeof(storage) - 1, sizeof(v),
			       3) == -EINVAL);
	CHECK(rtsc_latest_init(&latest, storage, sizeof(storage), 0, 1) == -EINVAL);
	CHECK(rtsc_latest_init(&latest, storage, sizeof(storage), sizeof(v), 0) ==
	      -EINVAL);
	CHECK(rtsc_latest_init(&latest, storage, sizeof(storage), sizeof(v), 3) == 0);
	CHECK(rtsc_latest_read(&latest, 0, &v) == 0 && v.word[0] == 77);
	rtsc_latest_write(&latest, &w);
	CHECK(rtsc_latest_read(&latest, 0, &v) == 1 && v.word[8] == 5);
	CHECK(rtsc_latest_read(&latest, 0, &v) == 1 && v.word[0] == 5);
}

static void each_reader_gets_the_last_value_and_its_number(void)
{
	struct words v, w;

	for (uint64_t n = 2; n < 40; n++) {
		w = words_of(n);
		rtsc_latest_write(&latest, &w);
		if (n % 3 == 0)
			CHECK(rtsc_latest_read(&latest, 1, &v) == n && v.word[3] == n);
	}
	CHECK(rtsc_latest_read(&latest, 0, &v) == 39 && v.word[0] == 39);
	CHECK(rtsc_latest_read(&latest, 2, &v) == 39 && v.word[8] == 39);
}

static void *read_values(void *arg)
{
	const unsigned int reader = (unsigned int)(uintptr_t)arg;
	uint64_t last = 0, number;
	struct words v;

	while (last < (uint64_t)ROUNDS) {
		number = rtsc_latest_read(&latest, reader, &v);
		CHECK(number >= last); /* never an older one */
		last = number;
		for (size_t i = 0; number && i < 9; i++)
			CHECK(v.word[i] == number);
	}
	return NULL;
}

static void no_reader_sees_a_torn_or_an_older_value(void)
{
	pthread_t thread[3];
	struct words v;

	rtsc_latest_init(&latest, storage, sizeof(storage), sizeof(v), 3);
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, read_values, (void *)i));
	for (uint64_t n = 1; n <= (uint64_t)ROUNDS; n++) {
		v = words_of(n);
		rtsc_latest_write(&latest, &v);
	}
	for (size_t i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
}

static void a_full_queue_counts_what_it_dropped(void)
{
	uint64_t room[9], n;

	CHECK(rtsc_queue_init(&queue, room, 4, 8) == -EINVAL);
	CHECK(rtsc_queue_init(&queue, room, sizeof(room), 0) == -EINVAL);
	CHECK(rtsc_queue_init(&queue, room, sizeof(room), sizeof(n)) == 0);
	CHECK(!rtsc_queue_pop(&queue, &n));
	for (n = 0; n < 11; n++)
		CHECK(rtsc_queue_push(&queue, &n) == (n < 8));
	CHECK(rtsc_queue_dropped(&queue) == 3);
	for (uint64_t i = 0; i < 8; i++)
		CHECK(rtsc_queue_pop(&queue, &n) && n == i);
	CHECK(!rtsc_queue_pop(&queue, &n));
	n = 99;
	CHECK(rtsc_queue_push(&queue, &n) && rtsc_queue_pop(&queue, &n) && n == 99);
	CHECK(rtsc_queue_dropped(&queue) == 3);
}

static void *pop_all(void *arg)
{
	uint64_t *popped = (uint64_t *)arg;
	uint64_t last = 0;
	struct words v;

	for (;;) {
		const bool last_look = __atomic_load_n(&ended, __ATOMIC_ACQUIRE);

		while (rtsc_queue_pop(&queue, &v)) {
			CHECK(v.word[0] > last); /* in order, none twice */
			last = v.word[0];
			for (size_t i = 0; i < 9; i++)
				CHECK(v.word[i] == last);
			++*popped;
		}
		if (last_look)
			return NULL;
	}
}

static void what_is_popped_and_what_is_dropped_is_what_was_pushed(void)
{
	static struct words room[16];
	uint64_t popped = 0, pushed = 0;
	pthread_t thread;
	struct words v;

	rtsc_queue_init(&queue, room, sizeof(room), sizeof(v));
	CHECK(!pthread_create(&thread, NULL, pop_all, &popped));
	for (uint64_t n = 1; n <= (uint64_t)ROUNDS; n++) {
		v = words_of(n);
		pushed += rtsc_queue_push(&queue, &v);
	}
	__atomic_store_n(&ended, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK(popped == pushed);
	CHECK(pushed + rtsc_queue_dropped(&queue) == (uint64_t)ROUNDS);
}

/* --- the log ---------------------------------------------------------------------- */

static char text[1 << 20];

static void read_text(int fd)
{
	size_t used = 0;
	ssize_t n;

	while ((n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
}

static const char *text_of(int fd)
{
	read_text(fd);
	close(fd);
	return text;
}

static uint64_t number_before(const char *at)
{
	while (at > text && at[-1] >= '0' && at[-1] <= '9')
		at--;
	return strtoull(at, NULL, 10);
}

static void a_log_has_all_conversions_as_printf(void)
{
	struct rtsc_log_setup setup = { .name = "control", .every_ns = 1000000 };
	struct rtsc_log *log;
	char want[256];
	int end[2];

	CHECK(pipe(end) == 0);
	setup.fd = end[1];
	CHECK(rtsc_log_open(&log, &setup) == 0);
	CHECK(rtsc_log_print(log, "plain"));
	CHECK(rtsc_log_print(log, "%d %i|%5d|%-4d|%04x %X %o %c 100%%", -1, INT32_MIN,
			     42, 7, 255, 0xbeef, 8, 'y'));
	CHECK(rtsc_log_print(log, "%u %lu %llu %zu %ld %lld %hhd", 4000000000u, 1ul,
			     18446744073709551615ull, (size_t)3, -4l, -5ll, 6));
	CHECK(rtsc_log_print(log, "%.3f %e %g %s %%", 1.5, 2.0, 0.25, "literal"));
	rtsc_log_close(log);
	close(end[1]);
	text_of(end[0]);
	CHECK(strstr(text, " control: plain\n"));
	snprintf(want, sizeof(want), "%d %i|%5d|%-4d|%04x %X %o %c 100%%\n", -1,
		 INT32_MIN, 42, 7, 255, 0xbeef, 8, 'y');
	CHECK(strstr(text, want));
	CHECK(strstr(text, "4000000000 1 18446744073709551615 3 -4 -5 6\n"));
	CHECK(strstr(text, "1.500 2.000000e+00 0.25 literal %\n"));
	CHECK(!strstr(text, "dropped"));
}

static void a_log_says_how_many_messages_were_dropped(void)
{
	struct rtsc_log_setup setup = { .records = 4, .every_ns = 1000000000 };
	struct rtsc_log *log;
	uint64_t printed, lines = 0, taken = 0, said = 0;
	FILE *file = tmpfile();

	CHECK(file);
	setup.fd = fileno(file);
	CHECK(rtsc_log_open(&log, &setup) == 0);
	/* however often the writer comes in between, at last one finds no room */
	for (printed = 0; printed < 100 || rtsc_log_dropped(log) < 2; printed++)
		taken += rtsc_log_print(log, "message %d", (int)printed);
	CHECK(rtsc_log_dropped(log) == printed - taken && taken >= 4);
	rtsc_log_close(log);
	CHECK(lseek(fileno(file), 0, SEEK_SET) == 0);
	read_text(fileno(file));
	fclose(file);
	for (const char *at = text; (at = strstr(at, "message ")); at++)
		lines++;
	CHECK(lines == taken);
	/* The writer may come in the middle: then it says so twice. */
	for (const char *at = text; (at = strstr(at, " messages were dropped\n")); at++)
		said += number_before(at);
	CHECK(said == printed - taken);
}

static void a_line_that_is_too_long_is_cut_and_one_that_nobody_reads_is_counted(void)
{
	static char longer[2000];
	struct rtsc_log_setup setup = { .every_ns = 1000000 };
	struct rtsc_log *log;
	int end[2];

	memset(longer, 'x', sizeof(longer) - 1);
	CHECK(pipe(end) == 0);
	setup.fd = end[1];
	CHECK(rtsc_log_open(&log, &setup) == 0);
	CHECK(rtsc_log_print(log, "a%sb", longer));
	CHECK(rtsc_log_print(log, "next"));
	rtsc_log_close(log);
	close(end[1]);
	CHECK(strstr(text_of(end[0]), "xxx\n") || strstr(text, "xxxb\n"));
	CHECK(strstr(text, "next\n"));

	setup.fd = 9999; /* none */
	CHECK(rtsc_log_open(&log, &setup) == 0);
	CHECK(rtsc_log_print(log, "lost"));
	while (!rtsc_log_unwritten(log))
		sched_yield();
	CHECK(rtsc_log_unwritten(log) == 1);
	rtsc_log_close(log);
}

int main(int argc, char **argv)
{
	(void)argv;
	emulated = argc > 1;
	a_reader_gets_nothing_before_the_first_value();
	each_reader_gets_the_last_value_and_its_number();
	no_reader_sees_a_torn_or_an_older_value();
	a_full_queue_counts_what_it_dropped();
	what_is_popped_and_what_is_dropped_is_what_was_pushed();
	a_log_has_all_conversions_as_printf();
	a_log_says_how_many_messages_were_dropped();
	a_line_that_is_too_long_is_cut_and_one_that_nobody_reads_is_counted();
	return 0;
}
