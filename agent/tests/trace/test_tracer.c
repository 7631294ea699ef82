/* SPDX-License-Identifier: MIT */
/* tracer and tracereport on files that stand for the kernel's: from pages to lines. */
#include "trace/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/slurp.h"
#include "tests/captured.h"
#include "tests/tracepages.h"
#include "trace/tracereport.h"

static char root[64] = "/tmp/rtscope-test-XXXXXX";
static struct candidates candidates[2];
static const int tids[2];
static struct counterdeltas deltas;
static struct tracer t;

static void run(const char *format)
{
	char command[512];

	snprintf(command, sizeof(command), format, root);
	CHECK(system(command) == 0);
}

static const char *path_of(const char *name)
{
	static char path[2 * TRACEFS_PATH];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void write_file(const char *name, const void *bytes, size_t size)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);

	CHECK(fd >= 0);
	CHECK(write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}

static void make_tracefs(void)
{
	CHECK(mkdtemp(root));
	run("cd %s && mkdir -p events/sched/sched_switch per_cpu/cpu0 per_cpu/cpu3 && "
	    "touch tracing_on && echo '77 rtscope/0' >saved_cmdlines && "
	    "echo 'name: sched_switch' >events/sched/sched_switch/format && "
	    "printf 'entries: 0\\noverrun: 5\\ncommit overrun: 0\\n' "
	    ">per_cpu/cpu3/stats");
	write_file("events/header_page", header_page, strlen(header_page));
}

static void write_pages(const char *name, int64_t first_ns, int count)
{
	unsigned char page[PAGE_BYTES];

	for (int i = 0; i < count; i++) {
		int fd;

		begin_page(page, (uint64_t)(first_ns + 1000 * i));
		put_event(page, 1, 0, 0, 8);
		put_event(page, 1, 900, 0, 8);
		fd = open(path_of(name), O_WRONLY | O_CREAT | O_APPEND, 0600);
		CHECK(fd >= 0 && write(fd, page, sizeof(page)) == sizeof(page));
		close(fd);
	}
}

/* As tracer_open() leaves it. */
static void open_on_files(void)
{
	const struct tracepage_layout layout = layout_of_tests();

	memset(candidates, 0, sizeof(candidates));
	candidates[1].cpu = 3;
	t = (struct tracer){
		.opened = true,
		.candidates = candidates,
		.samplers = 2,
		.cpus = 2,
		.cpu = { 0, 3 },
		.kallsyms_fd = -1,
		.before_ns = 500,
		.after_ns = 100,
		.buffer_kb = 64,
	};
	snprintf(t.header_page, sizeof(t.header_page), "%s", header_page);
	snprintf(t.tracefs, sizeof(t.tracefs), "%s", root);
	snprintf(t.instance, sizeof(t.instance), "%s", root);
	for (unsigned int i = 0; i < traceevents_count(); i++)
		t.events.err[i] = i == 0 ? 0 : -2;
	CHECK(tracewindow_init(&t.window, &layout, 2, 2, 64) == 0);
	t.raw_fd[0] = open(path_of("per_cpu/cpu0/trace_pipe_raw"), O_RDONLY);
	t.raw_fd[1] = open(path_of("per_cpu/cpu3/trace_pipe_raw"), O_RDONLY);
	CHECK(t.raw_fd[0] >= 0 && t.raw_fd[1] >= 0);
}

static void push(unsigned int sampler, int64_t expiry_ns, int64_t wake_ns)
{
	candidates_push(&candidates[sampler], (struct wakeup){ 1, expiry_ns, wake_ns });
}

static void a_run_on_these_files(void)
{
	unlink(path_of("per_cpu/cpu0/trace_pipe_raw"));
	unlink(path_of("per_cpu/cpu3/trace_pipe_raw"));
	write_pages("per_cpu/cpu0/trace_pipe_raw", 10000, 6);
	write_pages("per_cpu/cpu3/trace_pipe_raw", 11500, 2);
	open_on_files();
	tracer_start(&t, tids);
	CHECK(tracer_works(&t));
	push(0, 12000, 12950);
	push(1, 900, 800); /* early: none of the worst */
	push(1, 14000, 14100);
	tracer_stop(&t);
}

static void the_pages_around_the_worst_are_sent_in_order(void)
{
	const char *lines;

	a_run_on_these_files();
	CHECK(t.window.count == 2);
	CHECK(t.kallsyms_fd == -1 && t.raw_fd[0] == -1);

	capture();
	tracereport_emit_trace(&t, &out);
	emit_begin(&out, "end");
	lines = capture_end();
	CHECK(strstr(lines,
		     "{\"type\":\"trace_file\",\"name\":\"events/header_page\","));
	CHECK(strstr(lines, "\"name\":\"events/sched/sched_switch/format\""));
	CHECK(!strstr(lines, "events/header_event")); /* there is none */
	/* 11500 to 13050 of CPU 0: its pages 1 to 3, with those of the other to 14200 */
	CHECK(strstr(lines, "{\"type\":\"trace_pages\",\"cpu\":0,\"seq\":1,"));
	CHECK(strstr(lines, "{\"type\":\"trace_pages\",\"cpu\":3,\"seq\":0,"));
	CHECK(!strstr(lines, "\"cpu\":0,\"seq\":0,"));
	tracer_free(&t);
}

/* Somebody gives the machine's buffer larger pages meanwhile: ours stay as they are. */
static void the_pages_are_described_as_they_were_at_the_begin(void)
{
	static const char larger[] = "\tfield: char data;\toffset:16;\tsize:8176;\n";
	char right[1024];

	capture();
	emit_begin(&out, "trace_file");
	emit_text(&out, "name", "events/header_page");
	emit_base64(&out, "base64", header_page, strlen(header_page));
	snprintf(right, sizeof(right), "%s", capture_end());

	a_run_on_these_files();
	write_file("events/header_page", larger, strlen(larger));
	capture();
	tracereport_emit_trace(&t, &out);
	emit_begin(&out, "end");
	CHECK(strncmp(capture_end(), right, strlen(right)) == 0);
	write_file("events/header_page", header_page, strlen(header_page));
	tracer_free(&t);
}

static void what_was_recorded_and_lost_is_told(void)
{
	const char *line;

	a_run_on_these_files();
	capture();
	emit_begin(&out, "x");
	tracereport_emit_summary(&t, &deltas, &out);
	line = capture_end();
	CHECK(strstr(line, "\"tracing\":{\"enabled\":true,\"cause\":\"\""));
	CHECK(strstr(line, "\"page_bytes\":256,\"buffer_kb\":64"));
	CHECK(strstr(line, "\"events\":[\"sched:sched_switch\"],\"missing_events\":["));
	CHECK(strstr(line, "\"ftrace:kernel_stack\"]"));
	CHECK(strstr(line,
		     "{\"cpu\":0,\"events\":12,\"pages\":6,\"gaps\":0,\"damaged\":0,"
		     "\"overrun\":-1,\"dropped\":-1}"));
	CHECK(strstr(line,
		     "{\"cpu\":3,\"events\":4,\"pages\":2,\"gaps\":0,\"damaged\":0,"
		     "\"overrun\":5,\"dropped\":-1}"));
	CHECK(strstr(line, "\"kept\":[{\"cpu\":0,\"seq\":1,\"expiry_ns\":12000,"
			   "\"wake_ns\":12950,\"from_ns\":11500,\"to_ns\":13050,"));
	CHECK(strstr(line, "\"counter_deltas\":[]}"));
	tracer_free(&t);
}

static void what_is_left_at_the_end_is_taken_however_much_it_is(void)
{
	unlink(path_of("per_cpu/cpu0/trace_pipe_raw"));
	write_pages("per_cpu/cpu0/trace_pipe_raw", 10000, 400);
	open_on_files();
	tracer_start(&t, tids);
	push(0, 408000, 408500); /* the page before the last but one, and it */
	tracer_stop(&t);
	CHECK(t.window.ring_pages < 20);
	CHECK(t.window.ring[0].pages == 400);
	CHECK(t.window.kept[0].pages == 2 && !t.window.kept[0].truncated);
	tracer_free(&t);
}

static void who_cannot_begin_to_record_leaves_no_event_on(void)
{
	char text[4];

	write_file("events/enable", "1", 1);
	CHECK(unlink(path_of("tracing_on")) == 0);
	open_on_files();
	tracer_start(&t, tids);
	CHECK(!tracer_works(&t));
	CHECK(strstr(t.refusal.what, "cannot begin to record: No such file"));
	CHECK(slurp(path_of("events/enable"), text, sizeof(text)) == 1);
	CHECK(text[0] == '0');
	tracer_stop(&t);
	tracer_free(&t);
}

static void a_refusal_is_told_with_its_remedy_and_nothing_else(void)
{
	const char *line;

	t = (struct tracer){ .opened = true, .kallsyms_fd = -1 };
	tracefs_explain(root, -EKEYREJECTED, &t.refusal);
	CHECK(!tracer_works(&t));
	tracer_stop(&t); /* never begun */

	capture();
	emit_begin(&out, "x");
	tracereport_emit_summary(&t, &deltas, &out);
	line = capture_end();
	CHECK(strstr(
		line,
		"\"enabled\":false,\"cause\":\"lockdown\",\"reason\":\"the kernel"));
	CHECK(strstr(line,
		     "\"events\":[],\"missing_events\":[],\"cpus\":[],\"kept\":[]"));

	capture();
	tracereport_emit_trace(&t, &out);
	emit_begin(&out, "end");
	CHECK(capture_is("{\"type\":\"end\"}\n"));
}

int main(void)
{
	make_tracefs();
	the_pages_around_the_worst_are_sent_in_order();
	the_pages_are_described_as_they_were_at_the_begin();
	what_was_recorded_and_lost_is_told();
	what_is_left_at_the_end_is_taken_however_much_it_is();
	who_cannot_begin_to_record_leaves_no_event_on();
	a_refusal_is_told_with_its_remedy_and_nothing_else();
	run("rm -r %s");
	return 0;
}
