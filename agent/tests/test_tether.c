/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tether.h"
#include "check.h"

#define HALF_S INT64_C(500000000)
#define START  (INT64_C(1000) * 1000000000)

static int host = -1; /* its end of our standard input */

static void new_host(void)
{
	int ends[2];

	if (host >= 0)
		close(host);
	CHECK(pipe(ends) == 0);
	CHECK(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
	if (ends[0] != STDIN_FILENO)
		close(ends[0]);
	host = ends[1];
}

static void host_writes(const char *bytes)
{
	CHECK(write(host, bytes, strlen(bytes)) == (ssize_t)strlen(bytes));
}

static void a_silent_host_holds_without_heartbeats(void)
{
	struct tether t = { .watch = true };

	new_host();
	for (int i = 0; i < 100; i++)
		CHECK(tether_check(&t, START + i * HALF_S) == TETHER_HOLDS);
}

static void a_closed_standard_input_is_a_lost_parent(void)
{
	struct tether t = { .watch = true };

	new_host();
	CHECK(tether_check(&t, START) == TETHER_HOLDS);
	close(host);
	host = -1;
	CHECK(tether_check(&t, START + 1) == TETHER_PARENT);

	close(STDIN_FILENO);
	CHECK(tether_check(&t, START + 2) == TETHER_PARENT);
}

static void a_last_word_before_the_end_is_still_heard(void)
{
	struct tether t = { .watch = true };

	new_host();
	host_writes("..q");
	close(host);
	host = -1;
	CHECK(tether_check(&t, START) == TETHER_SIGNAL);
}

static void without_a_tether_standard_input_means_nothing(void)
{
	struct tether t = { 0 };

	new_host();
	host_writes("q");
	CHECK(tether_check(&t, START) == TETHER_HOLDS);
}

static void two_silent_checks_are_a_lost_link(void)
{
	struct tether t = { .watch = true, .heartbeat = true };

	new_host();
	CHECK(tether_check(&t, START) == TETHER_HOLDS);
	CHECK(tether_check(&t, START + HALF_S) == TETHER_HOLDS);
	CHECK(tether_check(&t, START + 2 * HALF_S) == TETHER_LINK);
}

static void a_heartbeat_begins_the_count_anew(void)
{
	struct tether t = { .watch = true, .heartbeat = true };

	new_host();
	for (int i = 0; i < 20; i++) {
		CHECK(tether_check(&t, START + 2 * i * HALF_S) == TETHER_HOLDS);
		CHECK(tether_check(&t, START + (2 * i + 1) * HALF_S) == TETHER_HOLDS);
		host_writes(".");
	}
}

static void checks_in_quick_succession_are_no_silence(void)
{
	struct tether t = { .watch = true, .heartbeat = true };

	new_host();
	for (int i = 0; i < 1000; i++)
		CHECK(tether_check(&t, START + i * 1000) == TETHER_HOLDS);
}

static void what_arrived_while_we_could_not_look_counts(void)
{
	struct tether t = { .watch = true, .heartbeat = true };

	new_host();
	CHECK(tether_check(&t, START) == TETHER_HOLDS);
	host_writes("....................");
	CHECK(tether_check(&t, START + 20 * HALF_S) == TETHER_HOLDS);
	CHECK(tether_check(&t, START + 20 * HALF_S + 1) == TETHER_HOLDS);
	CHECK(tether_check(&t, START + 21 * HALF_S) == TETHER_HOLDS);
	CHECK(tether_check(&t, START + 22 * HALF_S) == TETHER_LINK);
}

static void standard_input_keeps_its_flags(void)
{
	struct tether t = { .watch = true };

	new_host();
	CHECK(tether_check(&t, START) == TETHER_HOLDS);
	CHECK(!(fcntl(STDIN_FILENO, F_GETFL) & O_NONBLOCK));
}

/* A parent's wish must not make the agent deaf, nor blind for a load that ends. */
static void inherited_signal_settings_are_undone(void)
{
	sigset_t all, now;
	pid_t child;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGCHLD, SIG_IGN);
	tether_begin();

	sigprocmask(SIG_SETMASK, NULL, &now);
	CHECK(!sigismember(&now, SIGTERM) && !sigismember(&now, SIGUSR1));
	child = fork();
	if (child == 0)
		_exit(7);
	CHECK(child > 0);
	CHECK(waitpid(child, NULL, 0) == child);
}

/* The last test: a stop stays asked for. */
static void a_signal_asks_for_the_end(void)
{
	struct tether t = { 0 };

	CHECK(tether_check(&t, START) == TETHER_HOLDS);
	raise(SIGPIPE);
	raise(SIGUSR1);
	CHECK(tether_check(&t, START) == TETHER_HOLDS);
	raise(SIGTERM);
	CHECK(tether_check(&t, START) == TETHER_SIGNAL);
}

static void each_end_has_its_word(void)
{
	CHECK(tether_word(TETHER_HOLDS) == NULL);
	CHECK(strcmp(tether_word(TETHER_SIGNAL), "signal") == 0);
	CHECK(strcmp(tether_word(TETHER_PARENT), "parent") == 0);
	CHECK(strcmp(tether_word(TETHER_LINK), "link") == 0);
}

int main(void)
{
	a_silent_host_holds_without_heartbeats();
	a_closed_standard_input_is_a_lost_parent();
	a_last_word_before_the_end_is_still_heard();
	without_a_tether_standard_input_means_nothing();
	two_silent_checks_are_a_lost_link();
	a_heartbeat_begins_the_count_anew();
	checks_in_quick_succession_are_no_silence();
	what_arrived_while_we_could_not_look_counts();
	standard_input_keeps_its_flags();
	inherited_signal_settings_are_undone();
	each_end_has_its_word();
	a_signal_asks_for_the_end();
	return 0;
}
