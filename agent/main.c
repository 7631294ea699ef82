/* SPDX-License-Identifier: MIT */
/*
 * rtscope-agent - measures on the target; driven by the host program.
 *
 *   measure   wake-up latencies, as JSON Lines on standard output
 *   load      runs a command as the load and answers for it
 *   keep      holds a private directory and removes it when the host is gone
 *   read      files of this machine, for the host's facts
 *   disk      how much room a directory has
 *   tasks     every thread and its scheduling
 *   watch     what the threads of one process do, with their stacks
 *   cycles    when the threads of one process are woken, run and sleep
 *   demo      threads that follow scripts on one CPU, and what each did when
 *   apply     changes settings until they are asked back
 *   hold      changes settings for as long as the host lives
 *   restore   puts back what a killed agent had changed; asked, what was applied too
 *   start     becomes a program with the policy, CPUs and locked memory it is to have
 *   version   of the agent and the contract
 *
 * Exit status: 0 done, 2 usage, 3 no valid measurement; of start that of the program.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cycles/cyclewatch.h"
#include "demo/demo.h"
#include "files/disk.h"
#include "files/readfile.h"
#include "files/tree.h"
#include "host/version.h"
#include "load/load.h"
#include "measure/measure.h"
#include "options.h"
#include "settings/tune.h"
#include "start/start.h"
#include "tasks/tasks.h"
#include "thread/clock.h"
#include "watch/watch.h"

#define LINK_TIMEOUT_MS 3000 /* as long as the link may be silent, see hostlink.h */
#define REMOVE_TRIES    40

static enum exit_status keep(struct options *o, struct emit *out)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	/* a word of the host, or its end, is heard at once: it waits for ours */
	struct pollfd in = { .fd = o->link.watch ? STDIN_FILENO : -1,
			     .events = POLLIN };

	emit_begin(out, "keep");
	emit_end(out);
	while (hostlink_check(&o->link, clock_now_ns()) == HOSTLINK_UP)
		poll(&in, 1, (int)(hostlink_period_ns(&o->link) / 1000000));
	/* a load that is just ending may still make a file: again, until none is left */
	for (int tries = 0; tries < REMOVE_TRIES && tree_remove(o->operand[0]); tries++)
		nanosleep(&pause, NULL);
	return tree_remove(o->operand[0]) ? EXIT_INVALID : EXIT_DONE;
}

static enum exit_status run_command(struct options *o, struct emit *out)
{
	hostlink_begin();
	switch (o->command) {
	case COMMAND_MEASURE:
		return measure(o, out);
	case COMMAND_LOAD:
		return load(o, out);
	case COMMAND_KEEP:
		return keep(o, out);
	case COMMAND_READ:
		return readfile(o->operand, o->operands, out);
	case COMMAND_DISK:
		return disk(o->operand, o->operands, out);
	case COMMAND_APPLY:
		return tune_apply(o, out);
	case COMMAND_HOLD:
		return tune_hold(o, out);
	case COMMAND_RESTORE:
		return tune_restore(o, out);
	case COMMAND_TASKS:
		return tasks(o, out);
	case COMMAND_WATCH:
		return watch(o, out);
	case COMMAND_CYCLES:
		return cyclewatch(o, out);
	case COMMAND_DEMO:
		return demo(o, out);
	case COMMAND_START:
	case COMMAND_VERSION:
		break;
	}
	printf("rtscope-agent %s, contract %d\n", AGENT_VERSION, CONTRACT_SCHEMA);
	return EXIT_DONE;
}

/* A closed standard descriptor would go to the next file that is opened, and the lines
 * for the host into it. What stands in for it here can be neither read nor written. */
static void fill_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) != fd)
			_exit(EXIT_INVALID);
}

int main(int argc, char **argv)
{
	static struct emit out;
	struct options options;
	char error[OPTIONS_TEXT];

	fill_standard_descriptors();
	if (options_parse(argc, argv, &options, error)) {
		fprintf(stderr, "rtscope-agent: %s\n", error);
		return EXIT_USAGE;
	}
	if (options.command ==
	    COMMAND_START) /* signals and streams are the program's */
		return start(&options);
	emit_init(&out, STDOUT_FILENO);
	if (options.link.heartbeat)
		emit_set_timeout(&out, LINK_TIMEOUT_MS);
	return run_command(&options, &out);
}
