/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "machine/counters.h"
#include "tests/captured.h"
#include "thread/clock.h"

/* CPU 2 of four is offline and has no column. */
#define HEADER "           CPU0       CPU1       CPU3       \n"

static struct snapshot of(const char *text)
{
	return (struct snapshot){ .text = (char *)text, .size = strlen(text) };
}

static bool delta_is(const char *before, const char *after, const char *expected)
{
	const struct snapshot old = of(before), now = of(after);
	char line[1024];

	capture();
	emit_begin(&out, "t");
	counters_emit_delta(&out, "rows", &old, &now);
	snprintf(line, sizeof(line), "{\"type\":\"t\",\"rows\":[%s]}\n", expected);
	return capture_is(line);
}

static void columns_belong_to_the_cpus_of_the_header(void)
{
	CHECK(delta_is(
		HEADER
		"  0:         35          0          7  IO-APIC   2-edge  timer\n"
		"LOC:        100        200        300  Local timer interrupts\n",
		HEADER
		"  0:         35          1          9  IO-APIC   2-edge  timer\n"
		"LOC:        101        200        400  Local timer interrupts\n",
		"{\"id\":\"0\",\"name\":\"IO-APIC   2-edge  timer\","
		"\"per_cpu\":{\"1\":1,\"3\":2}},"
		"{\"id\":\"LOC\",\"name\":\"Local timer interrupts\","
		"\"per_cpu\":{\"0\":1,\"3\":100}}"));
}

static void nothing_that_stood_still_is_said(void)
{
	const char text[] = HEADER "  0:   35   0   7  IO-APIC   2-edge  timer\n";

	CHECK(delta_is(text, text, ""));
}

static void a_cpu_that_goes_offline_does_not_shift_the_others(void)
{
	CHECK(delta_is(
		"  CPU0  CPU1  CPU2  CPU3\n 9:  10  20  30  40  acpi\n",
		"  CPU0  CPU2  CPU3\n 9:  11  30  44  acpi\n",
		"{\"id\":\"9\",\"name\":\"acpi\",\"per_cpu\":{\"0\":1,\"3\":4}}"));
	CHECK(delta_is(
		"  CPU0  CPU2\n 9:  10  30  acpi\n",
		"  CPU0  CPU1  CPU2\n 9:  10  5  31  acpi\n",
		"{\"id\":\"9\",\"name\":\"acpi\",\"per_cpu\":{\"1\":5,\"2\":1}}"));
}

static void rows_of_no_cpu_are_given_to_none(void)
{
	CHECK(delta_is(HEADER "ERR:          0\nMIS:          2\n",
		       HEADER "ERR:          3\nMIS:          2\n",
		       "{\"id\":\"ERR\",\"name\":\"\",\"per_cpu\":{}}"));
}

static void rows_may_appear_vanish_and_change_places(void)
{
	CHECK(delta_is(HEADER " 1: 1 1 1 one\n 2: 2 2 2 two\n 3: 3 3 3 three\n",
		       HEADER " 3: 3 3 4 three\n 4: 0 9 0 four\n 1: 2 1 1 one\n",
		       "{\"id\":\"3\",\"name\":\"three\",\"per_cpu\":{\"3\":1}},"
		       "{\"id\":\"4\",\"name\":\"four\",\"per_cpu\":{\"1\":9}},"
		       "{\"id\":\"1\",\"name\":\"one\",\"per_cpu\":{\"0\":1}}"));
}

static void a_counter_of_32_bits_may_wrap(void)
{
	CHECK(delta_is(HEADER " 1: 4294967290 0 0 one\n", HEADER " 1: 4 0 0 one\n",
		       "{\"id\":\"1\",\"name\":\"one\",\"per_cpu\":{\"0\":10}}"));
}

static void a_counter_that_began_anew_counts_from_there(void)
{
	CHECK(delta_is(HEADER " 1: 1000 0 0 one\n", HEADER " 1: 4 0 0 one\n",
		       "{\"id\":\"1\",\"name\":\"one\",\"per_cpu\":{\"0\":4}}"));
}

static void a_name_is_kept_to_200_bytes_and_escaped(void)
{
	char row[600], expected[600], name[300];

	memset(name, 'n', sizeof(name));
	name[0] = '"';
	name[299] = '\0';
	snprintf(row, sizeof(row), HEADER " 1: 1 0 0 %s\n", name);
	name[200] = '\0';
	snprintf(expected, sizeof(expected),
		 "{\"id\":\"1\",\"name\":\"\\%s\",\"per_cpu\":{\"0\":1}}", name);
	CHECK(delta_is(HEADER, row, expected));
}

static void a_name_may_begin_with_a_digit(void)
{
	CHECK(delta_is(HEADER, HEADER " 1: 1 0 0  0-0020  12 Level  pio\n",
		       "{\"id\":\"1\",\"name\":\"0-0020  12 Level  pio\","
		       "\"per_cpu\":{\"0\":1}}"));
}

static void damaged_rows_are_left_out(void)
{
	CHECK(delta_is(HEADER " 1: 1 1 1 one\n",
		       HEADER
		       "no colon here\n: 5 5 5 no name\n"
		       "an id that is much longer than any of the kernel's: 5 5 5\n"
		       " 1: 1 1 2 one",
		       "{\"id\":\"1\",\"name\":\"one\",\"per_cpu\":{\"3\":1}}"));
	CHECK(delta_is("\n", "\n", ""));
}

static void without_the_file_the_list_is_empty(void)
{
	struct snapshot none;

	CHECK(snapshot_take("/nonexistent", &none) == -ENOENT);
	capture();
	emit_begin(&out, "t");
	counters_emit_delta(&out, "rows", &none, &none);
	counters_emit_cpu_times(&out, &none, &none);
	snapshot_free(&none);
	CHECK(capture_is("{\"type\":\"t\",\"rows\":[],\"cpu_times\":[]}\n"));
}

static void a_snapshot_reads_all_of_the_file(void)
{
	struct snapshot s;

	CHECK(snapshot_take("/proc/stat", &s) == 0);
	CHECK(s.size > 0 && s.size == strlen(s.text));
	CHECK(strstr(s.text, "softirq "));
	snapshot_free(&s);
}

static void cpu_times_are_differences_in_ns(void)
{
	const struct snapshot old = of("cpu  9 9 9 9 9 9 9 9 0 0\n"
				       "cpu0 10 1 5 100 7 1 2 0 0 0\n"
				       "cpu3 1 1 1 50 0 1 1 1 0 0\nintr 5 5\n");
	/* the idle time of CPU 0 goes back by one tick; CPU 1 is new */
	const struct snapshot now = of("cpu  9 9 9 9 9 9 9 9 0 0\n"
				       "cpu0 12 2 5 99 7 1 2 4 0 0\n"
				       "cpu1 1 1 1 1 1 1 1 1 0 0\n"
				       "cpu3 1 1 2 60 5 1 1 1 0 0\nintr 6 6\n");
	const int64_t tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);
	char expected[1024];

	capture();
	emit_begin(&out, "t");
	counters_emit_cpu_times(&out, &old, &now);
	snprintf(expected, sizeof(expected),
		 "{\"type\":\"t\",\"cpu_times\":["
		 "{\"cpu\":0,\"steal_ns\":%lld,\"irq_ns\":0,\"softirq_ns\":0,"
		 "\"user_ns\":%lld,\"system_ns\":0,\"idle_ns\":0},"
		 "{\"cpu\":3,\"steal_ns\":0,\"irq_ns\":0,\"softirq_ns\":0,"
		 "\"user_ns\":0,\"system_ns\":%lld,\"idle_ns\":%lld}]}\n",
		 (long long)(4 * tick_ns), (long long)(3 * tick_ns), (long long)tick_ns,
		 (long long)(15 * tick_ns));
	CHECK(capture_is(expected));
}

static void tasks_that_ran_are_counted_by_cpu(void)
{
	struct snapshot before =
		of("version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 100 50 7\n"
		   "domain0 3 0 0\ncpu1 0 0 0 0 0 0 1 2 3\n");
	struct snapshot after =
		of("version 15\ntimestamp 2\ncpu0 0 0 0 0 0 0 1100 60 9\n"
		   "domain0 3 0 0\ncpu1 0 0 0 0 0 0 1 2 3\ncpu2 0 0 0 0 0 0 1 1 1\n");

	capture();
	emit_begin(&out, "x");
	counters_emit_runs(&out, &before, &after);
	CHECK(capture_is("{\"type\":\"x\",\"schedstat\":["
			 "{\"cpu\":0,\"tasks\":2,\"ran_ns\":1000,\"waited_ns\":10},"
			 "{\"cpu\":1,\"tasks\":0,\"ran_ns\":0,\"waited_ns\":0}]}\n"));
}

static void switches_are_of_the_whole_machine_or_not_known(void)
{
	struct snapshot before = of("cpu  1 2\nctxt 1000\nbtime 1\n");
	struct snapshot after = of("cpu  1 2\nctxt 1234\nbtime 1\n");
	struct snapshot none = { 0 };

	CHECK(counters_switches(&before, &after) == 234);
	CHECK(counters_switches(&before, &none) == -1);
}

int main(void)
{
	tasks_that_ran_are_counted_by_cpu();
	switches_are_of_the_whole_machine_or_not_known();
	columns_belong_to_the_cpus_of_the_header();
	nothing_that_stood_still_is_said();
	a_cpu_that_goes_offline_does_not_shift_the_others();
	rows_of_no_cpu_are_given_to_none();
	rows_may_appear_vanish_and_change_places();
	a_counter_of_32_bits_may_wrap();
	a_counter_that_began_anew_counts_from_there();
	a_name_is_kept_to_200_bytes_and_escaped();
	a_name_may_begin_with_a_digit();
	damaged_rows_are_left_out();
	without_the_file_the_list_is_empty();
	a_snapshot_reads_all_of_the_file();
	cpu_times_are_differences_in_ns();
	return 0;
}
