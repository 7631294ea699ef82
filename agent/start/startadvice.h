/* SPDX-License-Identifier: MIT */
/* startadvice - why the kernel refused a program something, and what to type. */
#ifndef STARTADVICE_H
#define STARTADVICE_H

#include "machine/cpulist.h"
#include "thread/policy.h"

/* Prints two lines: what was refused, with errno (0: none) and the reason; what to
 * type. */
void startadvice_print(const char *program, const char *what, int err, const char *why,
		       const char *remedy);

/* Of err, got when policy was set. */
void startadvice_policy(const struct policy *policy, int err, struct refusal *out);

/* Of CPUs that the process could not have: those of wanted that are not in got. */
void startadvice_cpus(const struct cpulist *wanted, const struct cpulist *got,
		      struct refusal *out);

/* Of err, got by mlockall(). */
void startadvice_lock(int err, struct refusal *out);

/* Of err, got when one process was to trace another of the same user. */
void startadvice_trace(int err, struct refusal *out);

/* Notes where nothing spreads its threads over these CPUs: with isolcpus=. */
void startadvice_isolated(const char *program, const struct cpulist *cpus);

#endif
