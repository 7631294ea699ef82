/* SPDX-License-Identifier: MIT */
/* What is closed when; how long the kernel takes is tested by watching. */
#include "watch/lastcloser.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

#define MOST_KEPT 32

static int opened(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void what_is_taken_is_closed_when_asked_for(void)
{
	const int one = opened(), probe = opened();

	lastcloser_take(one);
	lastcloser_keep(probe);
	CHECK(is_open(one) && is_open(probe));
	lastcloser_close();
	CHECK(!is_open(one) && is_open(probe));
}

/* With the one of the test before. */
static void many_probes_are_closed_by_another_process(void)
{
	const int first = opened();
	int last;

	lastcloser_keep(first);
	for (int i = 2; i < MOST_KEPT; i++)
		lastcloser_keep(opened());
	CHECK(is_open(first));
	last = opened();
	lastcloser_keep(last);
	CHECK(!is_open(first) && is_open(last));
	CHECK(waitpid(-1, NULL, 0) > 0);
}

static void all_is_closed_where_descriptors_are_few(void)
{
	const int one = opened(), probe = opened();

	lastcloser_take(one);
	lastcloser_keep(probe);
	CHECK(lastcloser_release());
	CHECK(!is_open(one) && !is_open(probe));
	CHECK(!lastcloser_release());
	CHECK(waitpid(-1, NULL, 0) > 0);
}

static void at_the_end_nothing_is_kept(void)
{
	struct lastcloser c = lastcloser_begin(true);
	const int one = opened(), probe = opened();

	CHECK(c.pipe >= 0);
	lastcloser_take(one);
	lastcloser_keep(probe);
	CHECK(!is_open(one) && !is_open(probe));
	CHECK(waitpid(-1, NULL, WNOHANG) == 0);
	lastcloser_end(&c);
	CHECK(waitpid(-1, NULL, 0) > 0);
}

int main(void)
{
	what_is_taken_is_closed_when_asked_for();
	many_probes_are_closed_by_another_process();
	all_is_closed_where_descriptors_are_few();
	at_the_end_nothing_is_kept();
	return 0;
}
