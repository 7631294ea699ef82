/* SPDX-License-Identifier: MIT */
/* Ends everything below itself: all in one process, and nothing else may be there. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load/proctree.h"
#include "tests/check.h"

#define PATIENCE_MS 20000 /* who obeys has ended by then, beside any load */
#define DEAF_MS     50    /* who is deaf never ends */

static int ready[2];
static bool adopts; /* qemu-user 7.2 does not know PR_SET_CHILD_SUBREAPER */

static void say_ready(void)
{
	CHECK(write(ready[1], ".", 1) == 1);
}

static void await(int processes)
{
	char byte;

	for (int i = 0; i < processes; i++)
		CHECK(read(ready[0], &byte, 1) == 1);
}

static void __attribute__((noreturn)) sleep_for_ever(void)
{
	say_ready();
	for (;;)
		pause();
}

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		sleep_for_ever();
	return pid;
}

/* Two processes: a child with a child. */
static void start_family(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		start_sleeper();
		sleep_for_ever();
	}
}

static void start_deaf(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		signal(SIGTERM, SIG_IGN);
		sleep_for_ever();
	}
}

/* To be called when no other process is awaited. */
static void start_stopped(void)
{
	pid_t pid = start_sleeper();
	int status;

	await(1);
	CHECK(kill(pid, SIGSTOP) == 0);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
}

/* Its parent ends at once: it is ours only because we adopt. */
static void start_orphan(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		setsid();
		start_sleeper();
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void *sleep_in_thread(void *arg)
{
	(void)arg;
	sleep_for_ever();
}

/* Looks like a zombie, and is none: only its first thread has ended. */
static void start_headless(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		pthread_t thread;

		CHECK(pthread_create(&thread, NULL, sleep_in_thread, NULL) == 0);
		pthread_exit(NULL);
	}
}

static unsigned int living(void)
{
	struct proctree tree;

	proctree_look(&tree, NULL, NULL);
	CHECK(tree.cpu_ns >= 0);
	return tree.processes;
}

static void nothing_below_ends_at_once(void)
{
	CHECK(living() == 0);
	CHECK(proctree_end(PATIENCE_MS) == 0);
}

static void the_obedient_end_without_being_killed(void)
{
	start_stopped();
	start_sleeper();
	start_family();
	if (adopts)
		start_orphan();
	await(adopts ? 4 : 3);
	CHECK(living() == (adopts ? 5 : 4));

	CHECK(proctree_end(PATIENCE_MS) == 0);
	CHECK(living() == 0);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void the_deaf_are_killed_and_counted(void)
{
	start_deaf();
	start_deaf();
	await(2);
	CHECK(living() == 2);

	CHECK(proctree_end(DEAF_MS) == 2);
	CHECK(living() == 0);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void a_process_without_its_first_thread_ends_too(void)
{
	start_headless();
	await(1);
	CHECK(proctree_end(PATIENCE_MS) == 0);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void a_process_that_has_ended_is_not_counted(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	CHECK(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT) == 0);
	CHECK(living() == 0);
	CHECK(proctree_end(PATIENCE_MS) == 0);
}

int main(void)
{
	adopts = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
	CHECK(pipe(ready) == 0);
	nothing_below_ends_at_once();
	the_obedient_end_without_being_killed();
	the_deaf_are_killed_and_counted();
	a_process_without_its_first_thread_ends_too();
	a_process_that_has_ended_is_not_counted();
	return 0;
}
