/* SPDX-License-Identifier: MIT */
/*
 * clocks - readings of two clocks are handed from CPU to CPU, and must never be earlier
 * than the one before: the kernel's monotonic clock, and the counter that it is read from.
 *
 * clocks COUNT: a thread on each CPU, until so many readings of each clock have been
 * compared with one that another CPU had published. Prints JSON.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAX_CPUS  64
#define CPU_BITS  6
#define AT_ONCE   1024

struct clock {
	const char *name;
	uint64_t (*read)(void);
	_Atomic uint64_t latest; /* reading << CPU_BITS | CPU */
	_Atomic uint64_t handed, backwards, worst;
};

static uint64_t monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t counter(void)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
#elif defined(__riscv)
	uint64_t now;

	__asm__ volatile("fence; rdtime %0" : "=r"(now)::"memory");
	return now;
#else
	uint64_t now;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(now)::"memory");
	return now;
#endif
}

static struct clock clocks[] = {
	{ .name = "monotonic", .read = monotonic },
	{ .name = "counter", .read = counter },
};

static uint64_t wanted;

static void hand_on(struct clock *c, unsigned int cpu)
{
	uint64_t before = atomic_load(&c->latest);
	uint64_t now = c->read();
	uint64_t mine = now << CPU_BITS | cpu;

	if ((before & (MAX_CPUS - 1)) != cpu)
		atomic_fetch_add(&c->handed, 1);
	if (now < before >> CPU_BITS) {
		uint64_t by = (before >> CPU_BITS) - now;

		atomic_fetch_add(&c->backwards, 1);
		if (by > atomic_load(&c->worst))
			atomic_store(&c->worst, by);
	}
	while (before >> CPU_BITS < now &&
	       !atomic_compare_exchange_weak(&c->latest, &before, mine))
		;
}

static void *hand_on_all(void *number)
{
	unsigned int cpu = (unsigned int)(uintptr_t)number;
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	if (pthread_setaffinity_np(pthread_self(), sizeof(only), &only))
		exit(3);
	for (unsigned int i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
		while (atomic_load(&clocks[i].handed) < wanted)
			for (unsigned int n = 0; n < AT_ONCE; n++)
				hand_on(&clocks[i], cpu);
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int cpus = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t thread[MAX_CPUS];

	wanted = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
	if (!wanted || cpus > MAX_CPUS)
		return 2;
	for (unsigned int i = 0; i < cpus; i++)
		if (pthread_create(&thread[i], NULL, hand_on_all, (void *)(uintptr_t)i))
			return 3;
	for (unsigned int i = 0; i < cpus; i++)
		pthread_join(thread[i], NULL);
	for (unsigned int i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
		printf("%s\"%s\": {\"handed\": %" PRIu64 ", \"backwards\": %" PRIu64
		       ", \"worst\": %" PRIu64 "}",
		       i ? ", " : "{", clocks[i].name, clocks[i].handed,
		       clocks[i].backwards, clocks[i].worst);
	printf("}\n");
	return 0;
}
