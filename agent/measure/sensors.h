/* SPDX-License-Identifier: MIT */
/*
 * sensors - frequency, temperature, throttling and SMI count, where they are readable.
 *
 * Files are opened before the run; once a second the supervisor reads them again.
 */
#ifndef SENSORS_H
#define SENSORS_H

#include <stdbool.h>

#include "host/emit.h"
#include "machine/cpulist.h"

#define SENSORS_MAX_ZONES 16

struct sensors {
	struct cpulist cpus;
	int freq_fd[CPULIST_MAX_CPUS]; /* -1: not readable */
	int zone_fd[SENSORS_MAX_ZONES];
	char zone_name[SENSORS_MAX_ZONES][48];
	unsigned int zones;
	int64_t throttles_before[CPULIST_MAX_CPUS];
	int64_t smi_before;
};

/* Opens what there is and takes the counters at the start. */
void sensors_open(struct sensors *s, const struct cpulist *cpus);
void sensors_close(struct sensors *s);

/* Emits freq_khz and temp_mc for a tick. */
void sensors_emit(struct sensors *s, struct emit *e);

/* Emits throttle_counts and smi_count since sensors_open(), null where unknown. */
void sensors_emit_counters(struct sensors *s, struct emit *e);

/* Whether the SMI counter of an Intel CPU can be read here (needs CAP_SYS_RAWIO). */
bool sensors_have_smi(void);

#endif
