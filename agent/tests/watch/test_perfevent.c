/* SPDX-License-Identifier: MIT */
/* Takes samples out of a ring that the test writes as the kernel would. */
#include "watch/perfevent.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"
#include "watch/perfregs.h"

#define DATA_BYTES 4096

static unsigned char *map, *data;
static struct perf_event_mmap_page *page;
static unsigned char buffer[65536];

static struct perfring fresh_ring(void)
{
	const size_t first = (size_t)sysconf(_SC_PAGESIZE);

	free(map);
	map = calloc(1, first + DATA_BYTES);
	CHECK(map);
	data = map + first;
	page = (void *)map;
	return (struct perfring){ .map = map, .map_bytes = first + DATA_BYTES };
}

static void put(const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		data[page->data_head++ % DATA_BYTES] =
			((const unsigned char *)bytes)[i];
}

static void put_number(uint64_t number)
{
	put(&number, sizeof(number));
}

/* As the kernel writes it for the fields that the agent asks for. */
static void put_sample(uint64_t id, unsigned int stack_bytes, unsigned int copied)
{
	const unsigned int regs = (unsigned int)__builtin_popcountll(PERFREGS_MASK);
	struct perf_event_header header = {
		.type = PERF_RECORD_SAMPLE,
		.size = (uint16_t)(sizeof(header) + 8 * (8 + regs + 1) + stack_bytes),
	};

	put(&header, sizeof(header));
	put_number(id);
	put_number(0x1000); /* where */
	put_number(77);     /* when */
	put_number(0xfff0); /* touched */
	put(&(uint32_t){ 12 }, 4);
	put("tracepoint..", 12);
	put_number(2); /* 64-bit registers */
	for (unsigned int i = 0; i < regs; i++)
		put_number(i);
	put_number(stack_bytes);
	for (unsigned int i = 0; i < stack_bytes; i++)
		put(&(char){ 's' }, 1);
	put_number(copied);
}

static void a_sample_comes_out_as_it_went_in(void)
{
	struct perfring r = fresh_ring();
	struct perfsample s;

	CHECK(!perfring_take(&r, buffer, &s));
	put_sample(5, 64, 40);
	CHECK(perfring_take(&r, buffer, &s));
	CHECK(s.id == 5 && s.ip == 0x1000 && s.t_ns == 77 && s.address == 0xfff0);
	CHECK(s.raw_bytes == 12 && memcmp(s.raw, "tracepoint", 10) == 0);
	CHECK(s.abi == 2 && s.stack_bytes == 40 && s.stack[39] == 's');
	CHECK(s.regs[8] == 1 && page->data_tail == page->data_head);
	CHECK(!perfring_take(&r, buffer, &s));
}

static void a_sample_goes_around_the_end_of_the_ring(void)
{
	struct perfring r = fresh_ring();
	struct perfsample s;

	for (unsigned int i = 0; i < 40; i++) {
		put_sample(i, 512, 512);
		CHECK(perfring_take(&r, buffer, &s));
		CHECK(s.id == i && s.stack_bytes == 512 && s.stack[511] == 's');
		CHECK(!perfring_take(&r, buffer, &s));
	}
}

static void lost_samples_are_counted(void)
{
	struct perfring r = fresh_ring();
	struct perf_event_header header = { .type = PERF_RECORD_LOST,
					    .size = sizeof(header) + 16 };
	struct perfsample s;

	put(&header, sizeof(header));
	put_number(5);
	put_number(1234);
	put_sample(6, 8, 8);
	CHECK(perfring_take(&r, buffer, &s) && s.id == 6);
	CHECK(r.lost == 1234);
}

static void put_name(uint16_t misc, uint64_t t_ns)
{
	struct perf_event_header header = { .type = PERF_RECORD_COMM,
					    .misc = misc,
					    .size = sizeof(header) + 24 };

	put(&header, sizeof(header));
	put_number(7);
	put("control\0", 8);
	put_number(t_ns);
}

static void a_program_that_is_executed_is_told_and_a_mere_name_is_not(void)
{
	struct perfring r = fresh_ring();
	struct perfsample s;

	put_name(0, 60);
	put_name(PERF_RECORD_MISC_COMM_EXEC, 61);
	put_sample(6, 8, 8);
	CHECK(perfring_take(&r, buffer, &s));
	CHECK(s.program && !strcmp(s.program, "control") && s.t_ns == 61);
	CHECK(perfring_take(&r, buffer, &s) && !s.program && s.id == 6);
}

/* A program that makes them faster than they are read must not hold the reader. */
static void a_look_ends_with_what_was_there_when_it_began(void)
{
	struct perfring r = fresh_ring();
	struct perfsample s;
	unsigned int taken = 0;

	put_sample(1, 8, 8);
	put_sample(2, 8, 8);
	while (taken < 10 && perfring_take(&r, buffer, &s)) {
		CHECK(s.id == ++taken);
		put_sample(taken + 2, 8, 8);
	}
	CHECK(taken == 2);
	CHECK(perfring_take(&r, buffer, &s) && s.id == 3); /* the next look */
}

static void a_record_that_is_none_ends_the_reading(void)
{
	struct perfring r = fresh_ring();
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .size = 24 };
	struct perfsample s;

	put(&header, sizeof(header)); /* shorter than a sample is */
	put_number(1);
	put_number(1);
	CHECK(!perfring_take(&r, buffer, &s));
	header.size = 3; /* shorter than its own header */
	put(&header, sizeof(header));
	CHECK(!perfring_take(&r, buffer, &s));
}

static void an_event_of_a_cpu_is_compared_with_the_thread_first(void)
{
	char text[64];

	CHECK(perfevent_filter_thread(text, sizeof(text), 70, NULL) == 0);
	CHECK(strcmp(text, "common_pid == 70") == 0);
	CHECK(perfevent_filter_thread(text, sizeof(text), 70, "a == 1 || b == 2") == 0);
	CHECK(strcmp(text, "common_pid == 70 && (a == 1 || b == 2)") == 0);
	/* one that is cut would count what is to be left out */
	CHECK(perfevent_filter_thread(text, 20, 70, "a == 1 || b == 2") == -E2BIG);
}

static void what_a_filter_can_tell_may_be_of_a_cpu(void)
{
	struct perfevent_kind kind = { .type = PERF_TYPE_SOFTWARE };

	CHECK(!perfevent_can_be_of_cpu(&kind));
	kind.of_cpu = 300; /* the tracepoint of the same */
	CHECK(perfevent_can_be_of_cpu(&kind));
	kind = (struct perfevent_kind){ .type = PERF_TYPE_TRACEPOINT };
	CHECK(perfevent_can_be_of_cpu(&kind));
	kind.path = "/bin/true"; /* a probe */
	CHECK(!perfevent_can_be_of_cpu(&kind));
}

int main(void)
{
	what_a_filter_can_tell_may_be_of_a_cpu();
	an_event_of_a_cpu_is_compared_with_the_thread_first();
	a_sample_comes_out_as_it_went_in();
	a_sample_goes_around_the_end_of_the_ring();
	lost_samples_are_counted();
	a_program_that_is_executed_is_told_and_a_mere_name_is_not();
	a_look_ends_with_what_was_there_when_it_began();
	a_record_that_is_none_ends_the_reading();
	free(map);
	return 0;
}
