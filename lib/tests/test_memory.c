/* SPDX-License-Identifier: MIT */
/*
 * What the first use of memory costs after each usual set-up, and after rtsc_open():
 * page faults and system calls of one thread. `test_memory --table` prints the table of
 * lab/library.md.
 *
 * Each case runs in a process of its own, which is traced (ptrace) to count the system
 * calls between two calls of getppid().
 */
#include "../rtscope_task.c"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define STACK_USED (128 << 10)
#define BLOCKS     50
#define BLOCK      4000
#define HEAP       ((size_t)8 << 20)

struct cost {
	long faults, calls;
};

static struct cost *shown; /* shared with the child */

/* --- the uses -------------------------------------------------------------------- */

__attribute__((noinline)) static void use_stack(void)
{
	volatile char block[STACK_USED];

	for (size_t i = 0; i < sizeof(block); i += 1024)
		block[i] = 1;
}

__attribute__((noinline)) static void use_malloc(void)
{
	static char *volatile at[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		at[i] = (char *)malloc(BLOCK);
		if (at[i])
			memset(at[i], 1, BLOCK);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(at[i]);
}

static void *measure(void *use)
{
	struct rusage before, after;

	/* what measures is called once before, so that its own first use is not counted */
	getrusage(RUSAGE_THREAD, &before);
	syscall(SYS_getppid);
	getrusage(RUSAGE_THREAD, &before);
	((void (*)(void))use)();
	getrusage(RUSAGE_THREAD, &after);
	syscall(SYS_getppid);
	shown->faults =
		after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt;
	return NULL;
}

static const struct {
	const char *name;
	void (*use)(void);
	bool in_thread;
} uses[] = {
	{ "stack of a thread, 128 KiB", use_stack, true },
	{ "stack of `main`, 128 KiB", use_stack, false },
	{ "first `malloc` in a thread, 50 blocks of 4 kB", use_malloc, true },
};

/* --- the set-ups ----------------------------------------------------------------- */

static bool nothing(void)
{
	return true;
}

static bool lock_alone(void)
{
	return mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
}

static bool usual_recipe(void)
{
	volatile char *heap;

#ifdef __GLIBC__
	mallopt(M_TRIM_THRESHOLD, -1);
	mallopt(M_MMAP_MAX, 0);
#endif
	heap = (volatile char *)malloc(HEAP);
	for (size_t i = 0; heap && i < HEAP; i += 4096)
		heap[i] = 1;
	free((void *)heap);
	return lock_alone();
}

static bool with_one_arena(void)
{
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1);
#endif
	return usual_recipe();
}

static bool library(void)
{
	const struct rtsc_setup setup = { .private_statistics = true };
	struct rtsc_report report = { 0 };
	struct rtsc *app;

	return rtsc_open(&app, &setup, &report) == 0 && report.lacks == 0;
}

static const struct {
	const char *name;
	bool (*set_up)(void);
} setups[] = {
	{ "none", nothing },
	{ "`mlockall`", lock_alone },
	{ "usual recipe", usual_recipe },
	{ "and `M_ARENA_MAX=1`", with_one_arena },
	{ "`rtsc_open`", library },
};

#define USES   (sizeof(uses) / sizeof(uses[0]))
#define SETUPS (sizeof(setups) / sizeof(setups[0]))

/* --- one case -------------------------------------------------------------------- */

#define CANNOT 3

static void act(int set_up, int use)
{
	pthread_t thread;

	if (!setups[set_up].set_up())
		_exit(CANNOT);
	if (!uses[use].in_thread) {
		measure((void *)uses[use].use);
		_exit(0);
	}
	if (pthread_create(&thread, NULL, measure, (void *)uses[use].use))
		_exit(CANNOT);
	pthread_join(thread, NULL);
	_exit(0);
}

/* Counts what the thread calls between its first getppid() and its second, but not the
 * two getrusage() that lie between them. */
static int trace(pid_t child, long *calls)
{
	struct __ptrace_syscall_info info;
	pid_t counted = 0, pid;
	long seen = 0;
	int status, stop;

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (pid == child)
				return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
			continue;
		}
		stop = WSTOPSIG(status);
		if (stop == (SIGTRAP | 0x80) &&
		    ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
		    info.op == PTRACE_SYSCALL_INFO_ENTRY) {
			if ((long)info.entry.nr == SYS_getppid) {
				if (counted)
					*calls = seen - 2;
				counted = counted ? 0 : pid;
			} else if (pid == counted) {
				seen++;
			}
		}
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
	}
	return -1;
}

/* False: this machine does not let it be set up, or traced. */
static bool run(int set_up, int use, struct cost *cost)
{
	pid_t pid;
	int status;

	shown->faults = -1;
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(CANNOT);
		raise(SIGSTOP);
		act(set_up, use);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (!WIFSTOPPED(status))
		return false;
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE);
	ptrace(PTRACE_SYSCALL, pid, 0, 0);
	cost->calls = -1;
	status = trace(pid, &cost->calls);
	cost->faults = shown->faults;
	CHECK(status == 0 || status == CANNOT);
	return status == 0 && cost->calls >= 0;
}

/* Of some runs: what a busy kernel does to pages meanwhile is no first use of memory. */
static bool costs_nothing(int set_up, int use, struct cost *cost)
{
	for (int i = 0; i < 20; i++)
		if (!run(set_up, use, cost))
			return true; /* refused */
		else if (cost->faults == 0 && cost->calls == 0)
			return true;
	return false;
}

static void print_table(void)
{
	struct cost cost;

	printf("| first use | ");
	for (size_t s = 0; s < SETUPS; s++)
		printf("%s | ", setups[s].name);
	printf("\n|---|---:|---:|---:|---:|---:|\n");
	for (size_t u = 0; u < USES; u++) {
		printf("| %s | ", uses[u].name);
		for (size_t s = 0; s < SETUPS; s++) {
			if (run((int)s, (int)u, &cost))
				printf("%ld / %ld | ", cost.faults, cost.calls);
			else
				printf("refused | ");
		}
		printf("\n");
	}
}

static void nothing_is_touched_for_the_first_time_after_rtsc_open(void)
{
	struct cost cost;

	for (size_t u = 0; u < USES; u++)
		CHECK(costs_nothing((int)SETUPS - 1, (int)u, &cost));
}

/* Otherwise the test above could not see anything. */
static void without_a_set_up_each_use_has_faults(void)
{
	struct cost cost;

	for (size_t u = 0; u < USES; u++)
		if (run(0, (int)u, &cost))
			CHECK(cost.faults > 0);
}

#ifdef __GLIBC__
static void the_usual_recipe_leaves_the_first_malloc_of_a_thread(void)
{
	struct cost cost;

	if (run(2, USES - 1, &cost))
		CHECK(cost.faults > 0 && cost.calls > 0);
	CHECK(costs_nothing(3, USES - 1, &cost));
}
#endif

int main(int argc, char **argv)
{
	shown = (struct cost *)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shown != MAP_FAILED);
	if (argc > 1 && strcmp(argv[1], "--table") == 0) {
		print_table();
		return 0;
	}
	if (SANITIZED || argc > 1) /* an emulator traces nothing */
		return 0;
	nothing_is_touched_for_the_first_time_after_rtsc_open();
	without_a_set_up_each_use_has_faults();
#ifdef __GLIBC__
	the_usual_recipe_leaves_the_first_malloc_of_a_thread();
#endif
	return 0;
}
