/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "load/workers.h"
#include "tests/captured.h"
#include "tests/check.h"

#define NOBODY 0x7fff0000 /* more than any kernel gives: no status to be read */

static struct workers w;

static void begin(void)
{
	memset(&w, 0, sizeof(w));
	w.from_ns = 100;
}

static void see(int pid, char state, int64_t started, int64_t cpu)
{
	struct procstat s = {
		.pid = pid,
		.parent = 7,
		.state = state,
		.started_ticks = started,
		.cpu_ticks = cpu,
		.name = "a long name of a process",
	};

	workers_see(&w, &s);
}

static const char *line_at(int64_t now_ns)
{
	ssize_t n;

	capture();
	workers_emit(&w, now_ns, &out);
	n = pread(out.fd, captured, sizeof(captured) - 1, 0);
	CHECK(n > 0 && captured[n - 1] == '\n');
	captured[n] = '\0';
	close(out.fd);
	return captured;
}

static bool line_is(int64_t now_ns, const char *expected)
{
	const char *got = line_at(now_ns);

	if (strcmp(got, expected) != 0)
		fprintf(stderr, "expected: %sgot:      %s", expected, got);
	return strcmp(got, expected) == 0;
}

static int times(const char *text, const char *what)
{
	int found = 0;

	while ((text = strstr(text, what))) {
		found++;
		text++;
	}
	return found;
}

#define LINE(from, to, workers, rest)                                                  \
	"{\"type\":\"load_window\",\"from_ns\":" #from ",\"to_ns\":" #to               \
	",\"processes\":[" workers "],\"not_watched\":" #rest "}\n"
#define ONE(pid, started, state, cpu)                                                  \
	"{\"pid\":" #pid ",\"parent\":7,\"started_ns\":" #started                      \
	",\"name\":\"a long name of \",\"state\":\"" state "\",\"cpu_ns\":" #cpu       \
	",\"voluntary_switches\":null,\"involuntary_switches\":null}"

static void a_load_without_processes_has_an_empty_window(void)
{
	begin();
	CHECK(line_is(200, LINE(100, 200, "", 0)));
	CHECK(line_is(300, LINE(200, 300, "", 0)));
}

static void a_window_has_what_grew_in_it(void)
{
	begin();
	see(NOBODY, 'R', 5, 100);
	CHECK(line_is(200,
		      LINE(100, 200, ONE(2147418112, 50000000, "R", 1000000000), 0)));
	see(NOBODY, 'S', 5, 103);
	CHECK(line_is(300,
		      LINE(200, 300, ONE(2147418112, 50000000, "S", 30000000), 0)));
	see(NOBODY, 'T', 5, 103);
	CHECK(line_is(400, LINE(300, 400, ONE(2147418112, 50000000, "T", 0), 0)));
}

static void one_that_is_gone_is_told_once(void)
{
	begin();
	see(NOBODY, 'R', 5, 100);
	line_at(200);
	CHECK(line_is(300, LINE(200, 300, ONE(2147418112, 50000000, "gone", null), 0)));
	CHECK(line_is(400, LINE(300, 400, "", 0)));
}

static void a_pid_that_is_used_again_is_another_process(void)
{
	begin();
	see(NOBODY, 'R', 5, 100);
	line_at(200);
	see(NOBODY, 'R', 6, 1);
	CHECK(line_is(300, LINE(200, 300,
				ONE(2147418112, 50000000, "gone",
				    null) "," ONE(2147418112, 60000000, "R", 10000000),
				0)));
}

static void processes_come_and_go_by_ascending_pid(void)
{
	const char *line;

	begin();
	see(NOBODY + 1, 'R', 5, 1);
	see(NOBODY + 3, 'R', 5, 1);
	line_at(200);
	see(NOBODY, 'R', 6, 1);
	see(NOBODY + 2, 'R', 6, 1);
	see(NOBODY + 3, 'R', 5, 2);
	line = line_at(300);
	CHECK(times(line, "\"pid\":") == 4 && times(line, "gone") == 1);
	CHECK(strstr(line, "2147418112") < strstr(line, "2147418113"));
	CHECK(strstr(line, "2147418113") < strstr(line, "2147418114"));
	CHECK(strstr(line, "2147418114") < strstr(line, "2147418115"));
}

static void what_does_not_fit_is_counted_and_what_was_watched_stays(void)
{
	begin();
	for (int i = 0; i < WORKERS_MAX + 3; i++)
		see(NOBODY + 10 + i, 'R', 5, 1);
	CHECK(strstr(line_at(200), "\"not_watched\":3}"));

	/* a lower pid takes no place from one that was watched before */
	see(NOBODY, 'R', 6, 1);
	for (int i = 0; i < WORKERS_MAX + 3; i++)
		see(NOBODY + 10 + i, 'R', 5, 1);
	CHECK(!strstr(line_at(300), "gone"));
	CHECK(strstr(captured, "\"not_watched\":4}"));

	/* and what is gone makes room, a window later */
	line_at(400);
	see(NOBODY, 'R', 6, 1);
	CHECK(strstr(line_at(500), "\"not_watched\":0}"));
}

static void counts_are_read_from_a_status(void)
{
	const char text[] = "Name:\tvoluntary_ctxt_switches: 9\n"
			    "nonvoluntary_ctxt_switches:\t12\n"
			    "voluntary_ctxt_switches:\t34\nempty:\t\n";

	CHECK(workers_status_count(text, "voluntary_ctxt_switches") == 34);
	CHECK(workers_status_count(text, "nonvoluntary_ctxt_switches") == 12);
	CHECK(workers_status_count(text, "empty") == -1);
	CHECK(workers_status_count(text, "missing") == -1);
	CHECK(workers_status_count("", "missing") == -1);
	CHECK(workers_status_count("\n", "missing") == -1);
}

static void the_switches_of_a_process_that_lives_are_read(void)
{
	struct procstat s;

	begin();
	CHECK(procstat_read(getpid(), &s) == 0);
	workers_see(&w, &s);
	CHECK(w.table[0][0].voluntary_switches >= 0);
	CHECK(w.table[0][0].involuntary_switches >= 0);
}

int main(void)
{
	if (sysconf(_SC_CLK_TCK) != 100)
		return 0; /* the expected lines are in ticks of 10 ms */
	a_load_without_processes_has_an_empty_window();
	a_window_has_what_grew_in_it();
	one_that_is_gone_is_told_once();
	a_pid_that_is_used_again_is_another_process();
	processes_come_and_go_by_ascending_pid();
	what_does_not_fit_is_counted_and_what_was_watched_stays();
	counts_are_read_from_a_status();
	the_switches_of_a_process_that_lives_are_read();
	return 0;
}
