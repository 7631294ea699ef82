/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/hostlink.h"
#include "tests/check.h"

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
	struct hostlink t = { .watch = true };

	new_host();
	for (int i = 0; i < 100; i++)
		CHECK(hostlink_check(&t, START + i * HALF_S) == HOSTLINK_UP);
}

static void a_closed_standard_input_is_a_lost_parent(void)
{
	struct hostlink t = { .watch = true };

	new_host();
	CHECK(hostlink_check(&t, START) == HOSTLINK_UP);
	close(host);
	host = -1;
	CHECK(hostlink_check(&t, START + 1) == HOSTLINK_PARENT);

	close(STDIN_FILENO);
	CHECK(hostlink_check(&t, START + 2) == HOSTLINK_PARENT);
}

static void a_last_word_before_the_end_is_still_heard(void)
{
	struct hostlink t = { .watch = true };

	new_host();
	host_writes("..q");
	close(host);
	host = -1;
	CHECK(hostlink_check(&t, START) == HOSTLINK_SIGNAL);
}

static void without_a_link_standard_input_means_nothing(void)
{
	struct hostlink t = { 0 };

	new_host();
	host_writes("q");
	CHECK(hostlink_check(&t, START) == HOSTLINK_UP);
}

static void three_silent_seconds_are_a_lost_link(void)
{
	struct hostlink t = { .watch = true, .heartbeat = true };

	new_host();
	for (int i = 0; i < 6; i++)
		CHECK(hostlink_check(&t, START + i * HALF_S) == HOSTLINK_UP);
	CHECK(hostlink_check(&t, START + 6 * HALF_S) == HOSTLINK_LOST);
}

static void a_heartbeat_begins_the_count_anew(void)
{
	struct hostlink t = { .watch = true, .heartbeat = true };

	new_host();
	for (int i = 0; i < 60; i++) {
		CHECK(hostlink_check(&t, START + i * HALF_S) == HOSTLINK_UP);
		if (i % 6 == 5)
			host_writes(".");
	}
}

static void checks_in_quick_succession_are_no_silence(void)
{
	struct hostlink t = { .watch = true, .heartbeat = true };

	new_host();
	for (int i = 0; i < 1000; i++)
		CHECK(hostlink_check(&t, START + i * 1000) == HOSTLINK_UP);
}

static void what_arrived_while_we_could_not_look_counts(void)
{
	struct hostlink t = { .watch = true, .heartbeat = true };

	new_host();
	CHECK(hostlink_check(&t, START) == HOSTLINK_UP);
	host_writes("....................");
	CHECK(hostlink_check(&t, START + 20 * HALF_S) == HOSTLINK_UP);
	CHECK(hostlink_check(&t, START + 20 * HALF_S + 1) == HOSTLINK_UP);
	for (int i = 21; i < 26; i++)
		CHECK(hostlink_check(&t, START + i * HALF_S) == HOSTLINK_UP);
	CHECK(hostlink_check(&t, START + 26 * HALF_S) == HOSTLINK_LOST);
}

static void standard_input_keeps_its_flags(void)
{
	struct hostlink t = { .watch = true };

	new_host();
	CHECK(hostlink_check(&t, START) == HOSTLINK_UP);
	CHECK(!(fcntl(STDIN_FILENO, F_GETFL) & O_NONBLOCK));
}

/* A parent's settings must not make the agent deaf, nor blind for a load that ends. */
static void inherited_signal_settings_are_undone(void)
{
	sigset_t all, now;
	pid_t child;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	signal(SIGCHLD, SIG_IGN);
	hostlink_begin();

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
	struct hostlink t = { 0 };

	CHECK(hostlink_check(&t, START) == HOSTLINK_UP);
	raise(SIGPIPE);
	raise(SIGUSR1);
	CHECK(hostlink_check(&t, START) == HOSTLINK_UP);
	raise(SIGTERM);
	CHECK(hostlink_check(&t, START) == HOSTLINK_SIGNAL);
}

static void each_end_has_its_word(void)
{
	CHECK(hostlink_word(HOSTLINK_UP) == NULL);
	CHECK(strcmp(hostlink_word(HOSTLINK_SIGNAL), "signal") == 0);
	CHECK(strcmp(hostlink_word(HOSTLINK_PARENT), "parent") == 0);
	CHECK(strcmp(hostlink_word(HOSTLINK_LOST), "link") == 0);
}

int main(void)
{
	a_silent_host_holds_without_heartbeats();
	a_closed_standard_input_is_a_lost_parent();
	a_last_word_before_the_end_is_still_heard();
	without_a_link_standard_input_means_nothing();
	three_silent_seconds_are_a_lost_link();
	a_heartbeat_begins_the_count_anew();
	checks_in_quick_succession_are_no_silence();
	what_arrived_while_we_could_not_look_counts();
	standard_input_keeps_its_flags();
	inherited_signal_settings_are_undone();
	each_end_has_its_word();
	a_signal_asks_for_the_end();
	return 0;
}
