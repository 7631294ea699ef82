/* SPDX-License-Identifier: MIT */
/* The records of tracepoints, as the kernel's own `format` describes them. */
#include "watch/watchform.h"

#include <linux/perf_event.h>
#include <string.h>

#include "tests/check.h"

#define COMMON                                                                         \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char switch_format[] =
	COMMON "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	       "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	       "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
	       "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
	       "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
	       "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
	       "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n";
static const char enter_format[] =
	COMMON "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n"
	       "\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n";
static const char leave_format[] =
	COMMON "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n"
	       "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n";
static const char waking_format[] =
	COMMON "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	       "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	       "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n"
	       "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n";

static struct watchform form;
static unsigned char record[256];

static void put(size_t at, const void *bytes, size_t size)
{
	memcpy(record + at, bytes, size);
}

static void put32(size_t at, uint32_t number)
{
	put(at, &number, sizeof(number));
}

static void put64(size_t at, uint64_t number)
{
	put(at, &number, sizeof(number));
}

/* Head, event 5, thread 70, time 99, then the fields: from byte 36 on. */
static unsigned char *sample_of(unsigned int raw_bytes)
{
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE,
					    .size = (uint16_t)(36 + raw_bytes) };

	memset(record, 0, sizeof(record));
	put(0, &header, sizeof(header));
	put64(8, 5);
	put32(16, 7);
	put32(20, 70);
	put64(24, 99);
	put32(32, raw_bytes);
	return record;
}

static void formats_are_read_and_refused(void)
{
	struct watchform f;

	CHECK(watchform_read_switch(&form, switch_format) == 0);
	CHECK(watchform_read_calls(&form, enter_format) == 0);
	CHECK(watchform_read_results(&form, leave_format) == 0 && form.result == 16);
	CHECK(watchform_read_results(&f, enter_format) < 0);
	CHECK(watchform_read_waking(&form, waking_format) == 0);
	CHECK(form.word == 8 && form.next_prio == 60 && form.args == 16);
	CHECK(form.waker == 4 && form.wakee == 24 && form.wakee_prio == 28);
	CHECK(watchform_read_switch(&f, waking_format) < 0);
	CHECK(watchform_read_waking(&f, switch_format) < 0);
}

static void a_switch_says_who_got_the_cpu(void)
{
	struct watchform_record r;
	struct timeline_record out;

	sample_of(64);
	put32(36 + 28, 38);
	put64(36 + 32, 0x100);
	put(36 + 40, "kworker", 8);
	put32(36 + 56, 12);
	put32(36 + 60, 120);
	CHECK(watchform_parse(record, &r) && r.id == 5 && r.tid == 70 && r.t_ns == 99);
	CHECK(watchform_switch(&form, &r, &out));
	CHECK(out.runnable && out.priority == 38 && out.other.tid == 12);
	CHECK(out.other.priority == 120 && strcmp(out.other.name, "kworker") == 0);
	put64(36 + 32, 1); /* it sleeps */
	CHECK(watchform_switch(&form, &r, &out) && !out.runnable && !out.held);
	put64(36 + 32, 2); /* not even a signal wakes it */
	CHECK(watchform_switch(&form, &r, &out) && !out.runnable && out.held);
	r.raw_bytes = 60;
	CHECK(!watchform_switch(&form, &r, &out));
}

static void a_return_says_what_was_returned(void)
{
	struct watchform_record r;

	sample_of(24);
	put64(36 + 16, 33);
	CHECK(watchform_parse(record, &r) && watchform_result(&form, &r) == 33);
	put64(36 + 16, (uint64_t)-11);
	CHECK(watchform_result(&form, &r) == -11);
	r.raw_bytes = 16;
	CHECK(watchform_result(&form, &r) < 0);
}

static void a_wakeup_says_by_whom_and_from_where(void)
{
	static const struct {
		unsigned char flags;
		enum timeline_context context;
	} cases[] = { { 0, IN_THREAD },       { 0x21, IN_THREAD },
		      { 0x10, IN_SOFTIRQ },   { 0x08, IN_INTERRUPT },
		      { 0x18, IN_INTERRUPT }, { 0x40, IN_INTERRUPT } };
	struct watchform_record r;
	struct timeline_record out;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sample_of(40);
		record[36 + 2] = cases[i].flags;
		put32(36 + 4, 71);
		put32(36 + 24, 72);
		put32(36 + 28, (uint32_t)-1);
		CHECK(watchform_parse(record, &r) && watchform_waking(&form, &r, &out));
		CHECK(out.context == cases[i].context && out.other.tid == 71);
		CHECK(out.tid == 72 && out.priority == -1);
	}
	r.raw_bytes = 8;
	CHECK(!watchform_waking(&form, &r, &out));
}

static void a_call_has_its_number_and_arguments(void)
{
	struct watchform_record r;
	uint64_t args[WATCHFORM_ARGS];

	sample_of(64);
	put64(36 + 8, 202);
	put64(36 + 24, 128);
	put64(36 + 32, 2);
	CHECK(watchform_parse(record, &r));
	CHECK(watchform_call(&form, &r, args) == 202 && args[1] == 128 && args[2] == 2);
	CHECK(r.mode == 0 && r.ip == 0);
	r.raw_bytes = 12;
	CHECK(watchform_call(&form, &r, args) == -1);
}

static void a_call_has_the_mode_of_its_thread(void)
{
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE,
					    .size = 36 + 64 + 16 };
	struct watchform_record r;

	sample_of(64);
	put(0, &header, sizeof(header));
	put64(36 + 64, PERF_SAMPLE_REGS_ABI_32);
	put64(36 + 72, 0x1234);
	CHECK(watchform_parse(record, &r) && r.raw_bytes == 64);
	CHECK(r.mode == PERF_SAMPLE_REGS_ABI_32 && r.ip == 0x1234);
}

static void a_switch_record_says_in_or_out(void)
{
	struct perf_event_header header = { .type = PERF_RECORD_SWITCH, .size = 32 };
	struct watchform_record r;

	sample_of(0);
	put(0, &header, sizeof(header));
	put32(8, 7);
	put32(12, 70);
	put64(16, 99);
	CHECK(watchform_parse(record, &r) && r.is_switch && r.switched_in);
	CHECK(r.tid == 70 && r.t_ns == 99);
	header.misc = PERF_RECORD_MISC_SWITCH_OUT;
	put(0, &header, sizeof(header));
	CHECK(watchform_parse(record, &r) && !r.switched_in);
}

static void what_breaks_its_form_is_refused(void)
{
	struct watchform_record r;

	sample_of(64);
	put32(32, 65); /* more than the record has */
	CHECK(!watchform_parse(record, &r));
	record[0] = PERF_RECORD_EXIT;
	CHECK(!watchform_parse(record, &r));
	put(0, &(struct perf_event_header){ .type = PERF_RECORD_SAMPLE, .size = 16 },
	    8);
	CHECK(!watchform_parse(record, &r));
}

int main(void)
{
	formats_are_read_and_refused();
	a_switch_says_who_got_the_cpu();
	a_return_says_what_was_returned();
	a_wakeup_says_by_whom_and_from_where();
	a_call_has_its_number_and_arguments();
	a_call_has_the_mode_of_its_thread();
	a_switch_record_says_in_or_out();
	what_breaks_its_form_is_refused();
	return 0;
}
