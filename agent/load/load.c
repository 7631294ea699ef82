/* SPDX-License-Identifier: MIT */
#include "load/load.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files/programfile.h"
#include "files/tree.h"
#include "host/version.h"
#include "journal/journal.h"
#include "journal/memgroup.h"
#include "load/abandoned.h"
#include "load/proctree.h"
#include "load/workers.h"
#include "machine/randomseed.h"
#include "marker.h"
#include "thread/clock.h"
#include "thread/rights.h"

#define CHECK_NS     (250 * INT64_C(1000000))
#define POLITE_MS    12000 /* stress-ng cleans up and writes its metrics after SIGINT */
#define IMPATIENT_MS 300
#define GRACE_AFTER_TERM 1000
#define ERRORS_MOST      (1 << 16)
#define ERRORS_TOLD      1000
#define OF_PROGRAM       "RTSCOPE_PROGRAM" /* set: the load is what a board watches */
#define GRID_NS          (20 * INT64_C(1000000)) /* whole ticks at 100 to 1000 Hz */

struct guard {
	struct options *options;
	struct journal journal;
	pid_t child;
	int errors_fd;
	bool ended; /* by itself or not: the child has been waited for */
	int status;
	int64_t start_ns;
	int64_t oom_kills;
	unsigned int left; /* processes that live when it has ended by itself */
	int64_t next_window_ns;
	struct workers *workers;
};

/*
 * Begins a program on a board so many ns after a tick of the kernel's timer: what the
 * boot did before, such as unpacking a larger file, then shifts nothing.
 */
static void begin_program(const char *phase)
{
	const int64_t grid = clock_now_ns() / GRID_NS + 2;
	const int64_t phase_ns = strtoll(phase, NULL, 10);
	const struct timespec at = ns_timespec(grid * GRID_NS + phase_ns);

	randomseed_give(phase_ns);
	clock_sleep_until(&at);
	unsetenv(OF_PROGRAM);
	marker_candidate(MARKER_OF_PROGRAM, 0);
}

static void __attribute__((noreturn)) become_load(struct guard *g, pid_t parent,
						  int report_fd)
{
	const struct options *o = g->options;
	const char *log = o->log_path ? o->log_path : "/dev/null";
	int err = 0, fd;
	sigset_t none;

	if (o->memory_limit)
		err = memgroup_enter((int)parent);
	if (!err && o->user_given)
		err = rights_become(o->uid, o->gid);
	if (!err && o->scratch && mkdir(o->scratch, 0700) < 0)
		err = -errno;
	fd = err ? -1
		 : open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
			0600);
	if (!err && fd < 0)
		err = -errno;
	if (!err) {
		dup2(fd, STDOUT_FILENO);
		dup2(o->errors ? g->errors_fd : fd, STDERR_FILENO);
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		dup2(fd, STDIN_FILENO);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		/* its own session: a terminal's Ctrl-C is for the host, not for the load */
		setsid();
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != parent)
			_exit(126); /* it died before the kernel knew our request */
		if (getenv(OF_PROGRAM))
			begin_program(getenv(OF_PROGRAM));
		execvp(o->operand[0], o->operand);
		err = -errno;
	}
	/* the only thing that goes through the pipe: why there is no load */
	if (write(report_fd, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

/* In memory, as a pipe that nobody reads in time would make the program wait. */
static int open_errors(struct guard *g)
{
	if (!g->options->errors)
		return 0;
	g->errors_fd = memfd_create("rtscope-errors", MFD_CLOEXEC);
	if (g->errors_fd < 0 || fcntl(g->errors_fd, F_SETFL, O_APPEND) < 0)
		return -errno;
	return 0;
}

/* Gives back the memory of what was written first: its end is what is told. */
static void bound_errors(const struct guard *g)
{
	const int first = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct stat file;

	if (g->options->errors && fstat(g->errors_fd, &file) == 0 &&
	    file.st_size > ERRORS_MOST &&
	    fallocate(g->errors_fd, first, 0, file.st_size - ERRORS_MOST) < 0)
		return; /* it is tried again */
}

static void emit_errors(const struct guard *g, struct emit *out)
{
	char text[ERRORS_TOLD];
	struct stat file;
	off_t from;
	ssize_t n;

	if (!g->options->errors || fstat(g->errors_fd, &file) < 0)
		return;
	from = file.st_size > ERRORS_TOLD ? file.st_size - ERRORS_TOLD : 0;
	n = pread(g->errors_fd, text, sizeof(text), from);
	emit_bytes(out, "errors", text, n > 0 ? (size_t)n : 0);
}

/* Returns 0, or -errno when the command could not be run. */
static int start(struct guard *g)
{
	const pid_t parent = getpid();
	int report[2], err = open_errors(g);
	ssize_t n;

	if (err)
		return err;
	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	g->child = fork();
	if (g->child == 0)
		become_load(g, parent, report[1]);
	close(report[1]);
	if (g->child < 0)
		err = -errno;
	do {
		n = g->child < 0 ? 0 : read(report[0], &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	/* nothing came through, since exec has closed it: the load runs */
	close(report[0]);
	if (err && g->child > 0)
		waitpid(g->child, NULL, 0);
	return err;
}

/* Waits for whatever has ended; true once the load's first process has. */
static bool reap(struct guard *g)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == g->child) {
			g->ended = true;
			g->status = status;
		}
	}
	return g->ended;
}

/* What each process of the load did since the last window, as one line. */
static void emit_window(struct guard *g, struct emit *out, int64_t looked_ns)
{
	workers_emit(g->workers, looked_ns, out);
	/* looks are a second apart: the nearest one ends the window */
	g->next_window_ns = looked_ns + g->options->window_ns - NS_PER_S / 2;
}

static void emit_tick(struct guard *g, struct emit *out, int64_t now_ns)
{
	bool window = now_ns >= g->next_window_ns;
	struct proctree tree;
	int64_t looked_ns;

	if (!emit_ready(out, 0))
		return;
	proctree_look(&tree, window ? workers_see : NULL, g->workers);
	looked_ns = clock_now_ns();
	emit_begin(out, "load");
	emit_int(out, "t_ns", looked_ns);
	emit_int(out, "processes", tree.processes);
	emit_int(out, "cpu_ns", tree.cpu_ns);
	emit_end(out);
	if (window)
		emit_window(g, out, looked_ns);
}

/* Before anything is ended: who is missing now was missing in the measurement. */
static void look_last(struct guard *g, struct emit *out)
{
	struct proctree tree;

	proctree_look(&tree, workers_see, g->workers);
	emit_window(g, out, clock_now_ns());
}

static enum hostlink_end watch(struct guard *g, struct emit *out)
{
	int64_t now_ns = g->start_ns, next_tick_ns = g->start_ns + NS_PER_S / 2;

	while (!reap(g)) {
		/* from now: what the load itself has delayed is not made up for */
		struct timespec until = ns_timespec(now_ns + CHECK_NS);
		enum hostlink_end end;

		clock_sleep_until(&until);
		now_ns = clock_now_ns();
		bound_errors(g);
		end = hostlink_check(&g->options->link, now_ns);
		if (end != HOSTLINK_UP)
			return end;
		if (now_ns >= next_tick_ns) {
			emit_tick(g, out, now_ns);
			next_tick_ns = now_ns + NS_PER_S;
		}
		if (out->error)
			return HOSTLINK_PARENT; /* nobody is left to read */
	}
	return HOSTLINK_UP;
}

/* An orderly end lets stress-ng write its metrics; a lost host wants a quick one. */
static unsigned int end_load(struct guard *g, enum hostlink_end why)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	if (why == HOSTLINK_SIGNAL && !g->ended) {
		kill(g->child, SIGINT);
		for (int waited_ms = 0; waited_ms < POLITE_MS && !reap(g);
		     waited_ms += 10) {
			enum hostlink_end now =
				hostlink_check(&g->options->link, clock_now_ns());

			nanosleep(&pause, NULL);
			if (now != HOSTLINK_PARENT && now != HOSTLINK_LOST)
				continue;
			why = now; /* nobody is left who could ask for the rest */
			break;
		}
	}
	return proctree_end(why == HOSTLINK_SIGNAL ? GRACE_AFTER_TERM : IMPATIENT_MS);
}

static void note_living(void *context, const struct procstat *process)
{
	struct guard *g = context;

	g->left += process->state != 'Z';
}

static void emit_end_line(struct guard *g, struct emit *out, bool asked,
			  unsigned int killed)
{
	struct proctree tree;

	proctree_look(&tree, NULL, NULL);
	emit_begin(out, "load_end");
	if (g->ended && WIFEXITED(g->status))
		emit_int(out, "status", WEXITSTATUS(g->status));
	else
		emit_null(out, "status");
	if (g->ended && WIFSIGNALED(g->status))
		emit_int(out, "signal", WTERMSIG(g->status));
	else
		emit_null(out, "signal");
	emit_bool(out, "stop_requested", asked);
	emit_int(out, "killed", killed);
	emit_int(out, "left", g->left);
	if (g->oom_kills < 0)
		emit_null(out, "oom_kills");
	else
		emit_int(out, "oom_kills", g->oom_kills);
	emit_int(out, "cpu_ns", tree.cpu_ns);
	emit_errors(g, out);
	emit_end(out);
}

static enum exit_status make_memory_group(struct guard *g, struct emit *out)
{
	const struct knob_place place = { "", "memory_group", (int)getpid() };
	char message[OPTIONS_TEXT];
	int err;

	if (!g->options->memory_limit)
		return EXIT_DONE;
	err = journal_set_knob(&g->journal, JOURNAL_DIR, &place,
			       g->options->memory_limit);
	if (!err)
		return EXIT_DONE;
	snprintf(message, sizeof(message),
		 "cannot make a memory cgroup for the load: %s", strerror(-err));
	return emit_error(out, err == -EOPNOTSUPP ? "cgroup" : "capability", message,
			  err == -EOPNOTSUPP
				  ? "enable the memory controller: echo +memory > "
				    "/sys/fs/cgroup/cgroup.subtree_control"
				  : "run as root, or leave the oom load out");
}

/* Whether the folder of a file was removed, e.g. by whoever empties /tmp. */
static bool folder_is_gone(const char *path)
{
	char folder[OPTIONS_TEXT];
	const char *end = path ? strrchr(path, '/') : NULL;

	if (!end || end == path || end - path >= (ptrdiff_t)sizeof(folder))
		return false;
	memcpy(folder, path, (size_t)(end - path));
	folder[end - path] = '\0';
	return access(folder, F_OK) < 0 && errno == ENOENT;
}

static enum exit_status fail_start(struct guard *g, struct emit *out, int err)
{
	const char *remedy = "check the command and the directories named";
	struct programfile_cause cause;
	char message[OPTIONS_TEXT];

	if (err == -ENOENT && folder_is_gone(g->options->log_path)) {
		snprintf(message, sizeof(message),
			 "cannot run %.60s: the folder of %.140s was removed",
			 g->options->operand[0], g->options->log_path);
		return emit_error(out, "other", message,
				  "leave temporary files alone while rtscope works, "
				  "or name another directory in TMPDIR");
	}
	cause = programfile_cause(g->options->operand[0], -err);
	snprintf(message, sizeof(message), "cannot run %.100s: %s%s%s",
		 g->options->operand[0], strerror(-err), *cause.why ? ": " : "",
		 cause.why);
	if (g->options->errors || *cause.why)
		remedy = cause.remedy;
	else if (err == -ENOENT)
		remedy = "install it, or choose another load";
	return emit_error(out, err == -ENOENT ? "missing" : "other", message, remedy);
}

static void emit_hello(struct guard *g, struct emit *out)
{
	emit_begin(out, "load_hello");
	emit_int(out, "schema", CONTRACT_SCHEMA);
	emit_int(out, "pid", g->child);
	emit_open(out, "argv", '[');
	for (int i = 0; i < g->options->operands; i++)
		emit_text(out, NULL, g->options->operand[i]);
	emit_close(out, ']');
	emit_end(out);
}

enum exit_status load(struct options *options, struct emit *out)
{
	static struct workers workers; /* too large for a stack */
	struct guard g = { .options = options, .oom_kills = -1, .workers = &workers };
	struct abandoned abandoned = { .count = 0 };
	struct proctree tree;
	enum hostlink_end why;
	unsigned int killed;
	enum exit_status status;
	int err;
	bool made_scratch = false;

	journal_init(&g.journal);
	journal_replay(JOURNAL_DIR, "", NULL, NULL);
	/* orphans of the load come to us instead of to init */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	status = make_memory_group(&g, out);
	if (status)
		goto out_journal;

	g.start_ns = clock_now_ns();
	workers.from_ns = g.start_ns;
	err = start(&g);
	/* one that was there before is not ours to remove */
	made_scratch = options->scratch && err != -EEXIST;
	if (err) {
		status = fail_start(&g, out, err);
		goto out_journal;
	}
	emit_hello(&g, out);
	why = watch(&g, out);
	if (why == HOSTLINK_UP || why == HOSTLINK_SIGNAL)
		look_last(&g, out);
	/* one that ended by itself has left what it wanted to leave */
	if (why != HOSTLINK_UP)
		proctree_look(&tree, abandoned_note, &abandoned);
	else
		proctree_look(&tree, note_living, &g);
	killed = end_load(&g, why);
	abandoned_remove(&abandoned, "/dev/shm");
	if (options->memory_limit)
		g.oom_kills = memgroup_oom_kills((int)getpid());
	emit_end_line(&g, out, why != HOSTLINK_UP, killed);

out_journal:
	if (made_scratch)
		tree_remove(options->scratch);
	if (journal_restore(&g.journal, "", NULL, NULL))
		return emit_error(out, "knob", "the load's cgroup could not be removed",
				  "run rtscope-agent restore as root");
	return status;
}
