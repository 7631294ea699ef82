/* SPDX-License-Identifier: MIT */
/*
 * meters - energy, power, temperatures of devices and memory in use, once a second.
 *
 * Of powercap (RAPL) and hwmon, where the machine has them: the files are opened before
 * rights are dropped, since kernels from 5.10 on let root alone read the energy.
 */
#ifndef METERS_H
#define METERS_H

#include "host/emit.h"

#define METERS_MAX 64

struct meter {
	const char *key; /* of the tick: energy_uj, power_uw or device_mc */
	char name[64];   /* as package-0/intel-rapl:0, or amdgpu/edge/2 */
	int fd;
};

struct meters {
	struct meter meter[METERS_MAX];
	unsigned int count;
	int meminfo_fd; /* -1: not readable */
};

/* Opens all there are below root, which is empty but in tests. */
void meters_open(struct meters *m, const char *root);
void meters_close(struct meters *m);

/* Emits what they read now; a key without a reading is left out. */
void meters_emit(const struct meters *m, struct emit *e);

#endif
