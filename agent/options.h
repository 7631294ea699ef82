/* SPDX-License-Identifier: MIT */
/*
 * options - the agent's command line, checked once.
 *
 * The agent is driven by the host program; its options are exact and in ns.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/hostlink.h"
#include "machine/cpulist.h"
#include "measure/eventkind.h"
#include "thread/policy.h"

#define OPTIONS_MAX_KNOBS  64
#define OPTIONS_MAX_PROBES 16
#define OPTIONS_MAX_GROUPS 256
#define OPTIONS_TEXT       256

enum command {
	COMMAND_MEASURE,
	COMMAND_LOAD,
	COMMAND_KEEP,
	COMMAND_READ,
	COMMAND_DISK,
	COMMAND_APPLY,
	COMMAND_HOLD,
	COMMAND_RESTORE,
	COMMAND_TASKS,
	COMMAND_WATCH,
	COMMAND_CYCLES,
	COMMAND_DEMO,
	COMMAND_START,
	COMMAND_VERSION,
};

struct knob_change {
	const char *name;
	const char *indices; /* "0,2-5": see knob_place; NULL: none were named */
	const char *value;
};

/* Where a program calls a function: its file, and the place in it. */
struct probe {
	const char *name;
	const char *path;
	uint64_t offset;
};

struct options {
	enum command command;
	struct hostlink link;

	/* measure */
	bool cpus_given; /* else all that the process may use */
	struct cpulist cpus;
	struct policy policy;
	int64_t interval_ns;
	int64_t duration_ns;
	int64_t phase_ns; /* added to the start of the grid */
	struct event_choice
		event;          /* what wakes the threads; their timers without one */
	const char *event_text; /* as it was given */
	unsigned int worst;
	const char *name; /* of its threads, before the CPU */
	bool hold_cpu_awake;
	bool growth;       /* tell once a second what the histogram grew by */
	bool keep_samples; /* the latency of each wake-up, for the whole run */
	bool trace;        /* keep the kernel's events around the worst wake-ups */
	struct knob_change knob[OPTIONS_MAX_KNOBS];
	unsigned int knobs;

	/* load */
	const char *memory_limit; /* bytes, decimal; NULL: no group of its own */
	const char *log_path;
	bool errors;         /* standard error goes to memory, and its end is told */
	const char *scratch; /* made before the load, removed after it */
	bool user_given;
	uid_t uid;
	gid_t gid;

	/* restore */
	bool applied_too;

	/* watch and cycles; the duration is that of measure */
	int pid;
	unsigned int stacks; /* to copy of each kind of event and thread, at most */
	struct probe probe[OPTIONS_MAX_PROBES];
	unsigned int probes;

	/* demo: beside the CPU and the duration of measure */
	bool lock_memory;
	bool inherit; /* its mutexes have priority inheritance */

	/* start: beside policy, CPUs, user and lock_memory */
	bool policy_given, nice_given; /* else as the agent itself has it */
	int nice;
	bool reset_on_fork;
	bool shield; /* in the control group with CPUs of its own, which is there */
	gid_t group[OPTIONS_MAX_GROUPS];
	int groups;
	uint64_t capabilities; /* a bit for each, which the program gets */
	int io_class;          /* 1 to 3 of ioprio_set(2); 0: as it is */
	int io_level;
	const char
		*given_path; /* where it writes what the program has; NULL: nowhere */

	/* load, and tasks, where 0 is none */
	int64_t window_ns;

	/* load: the command; read, disk: the paths; keep: the directory; demo: the
	 * scripts of the threads; start: the program */
	char **operand;
	int operands;
};

/* Takes the next range off a list of numbers. 1, 0 at its end, -EINVAL. */
int options_next_range(const char **list, int *from, int *to);

/* Whether a text is such a list, all of it. */
bool options_is_list(const char *text);

/* Returns 0, or -EINVAL with a sentence for the user in error. */
int options_parse(int argc, char **argv, struct options *out, char error[OPTIONS_TEXT]);

#endif
