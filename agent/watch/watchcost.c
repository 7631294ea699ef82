/* SPDX-License-Identifier: MIT */
#include "watch/watchcost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "files/slurp.h"
#include "thread/clock.h"

#define TIMES  32 /* stacks that have room in the ring */
#define ROUNDS 5
#define RING   (1 << 20)
#define MAPS   16384

typedef void (*action)(char *pages, size_t page, unsigned int number);

static void touch_page(char *pages, size_t page, unsigned int number)
{
	*(volatile char *)(pages + page * number) = 1;
}

/* One of the system calls that may block; with no descriptor it does not. */
static void call_system(char *pages, size_t page, unsigned int number)
{
	(void)pages, (void)page, (void)number;
	ioctl(-1, 0);
}

static __attribute__((noinline)) void probed(void)
{
	__asm__ volatile("" ::: "memory");
}

static void call_probed(char *pages, size_t page, unsigned int number)
{
	(void)pages, (void)page, (void)number;
	probed();
}

/* The least of some rounds, of one action: what comes between is not its cost. */
static int64_t least_ns(action act, char *pages, struct perfring *ring,
			unsigned char *buffer)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char deep[PERFEVENT_STACK_BYTES]; /* as much as is copied */
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < sizeof(deep); i += 512)
		deep[i] = 1;
	for (int round = 0; round < ROUNDS; round++) {
		struct perfsample sample;
		int64_t begin;

		if (pages)
			madvise(pages, page * TIMES, MADV_DONTNEED);
		begin = clock_now_ns();
		for (unsigned int i = 0; i < TIMES; i++)
			act(pages, page, i);
		begin = clock_now_ns() - begin;
		least = begin < least ? begin : least;
		while (ring && perfring_take(ring, buffer, &sample))
			;
	}
	return least / TIMES;
}

static void measure(struct watch *w, struct watch_cost *cost,
		    struct perfevent_kind *kind, action act, char *pages)
{
	struct perfring ring = { .map = NULL };
	struct perfevent e;

	cost->plain_ns = least_ns(act, pages, NULL, NULL);
	if (perfevent_open(&e, kind, 0, PERFEVENT_OWN))
		return;
	if (e.both)
		perfevent_run(&e, false);
	if (perfevent_count_on(&e) == 0)
		cost->counted_ns = least_ns(act, pages, NULL, NULL);
	if (e.sampler_fd >= 0 && perfring_join(&ring, &e, RING) == 0 &&
	    perfevent_run(&e, true) == 0)
		cost->copied_ns = least_ns(act, pages, &ring, w->buffer);
	perfring_close(&ring);
	perfevent_close(&e);
}

/* Where in the agent's own file the function is; false if that is unknown. */
static bool find_probed(uint64_t *offset)
{
	const unsigned long address = (unsigned long)(uintptr_t)probed;
	static char text[MAPS];
	unsigned long start, end, begin;

	if (slurp("/proc/self/maps", text, sizeof(text)) < 0)
		return false;
	for (char *line = text; line && *line;) {
		char *next = strchr(line, '\n');

		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &begin) == 3 &&
		    start <= address && address < end) {
			*offset = address - start + begin;
			return true;
		}
		line = next ? next + 1 : NULL;
	}
	return false;
}

static struct perfevent_kind *kind_named(struct watch *w, const char *name)
{
	for (unsigned int i = 0; i < w->kinds; i++)
		if (strcmp(w->kind[i].name, name) == 0 && !w->refused[i])
			return &w->kind[i];
	return NULL;
}

int64_t watchcost_call_ns(void)
{
	return least_ns(call_system, NULL, NULL, NULL);
}

/* What records when it begins and ends is another event than the one that counts it. */
static void add_timing(struct watch_cost *call, int64_t watched_ns)
{
	const int64_t more_ns = watched_ns - call->counted_ns;

	if (!call->counted_ns || more_ns <= 0)
		return;
	call->counted_ns += more_ns;
	if (call->copied_ns)
		call->copied_ns += more_ns;
}

void watchcost_measure(struct watch *w, int64_t watched_call_ns)
{
	const size_t bytes = TIMES * (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct perfevent_kind *fault = kind_named(w, "minor_fault");
	struct perfevent_kind *call = kind_named(w, "blocking_call");
	struct perfevent_kind probe;

	w->cost[0].name = "fault";
	w->cost[1].name = "call";
	w->cost[2].name = "probe";
	if (pages == MAP_FAILED)
		return;
	madvise(pages, bytes, MADV_NOHUGEPAGE);
	if (fault)
		measure(w, &w->cost[0], fault, touch_page, pages);
	if (call)
		measure(w, &w->cost[1], call, call_system, pages);
	add_timing(&w->cost[1], watched_call_ns);
	/* of the first probe everything but the place */
	for (unsigned int i = 0; i < w->kinds; i++) {
		if (!w->kind[i].path || w->refused[i])
			continue;
		probe = w->kind[i];
		probe.path = "/proc/self/exe";
		if (find_probed(&probe.offset))
			measure(w, &w->cost[2], &probe, call_probed, pages);
		break;
	}
	munmap(pages, bytes);
}
