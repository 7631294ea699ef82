/* SPDX-License-Identifier: MIT */
#include "measure/sensors.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/slurp.h"

#define CPU_DIR       "/sys/devices/system/cpu/cpu%d/"
#define MSR_SMI_COUNT 0x34 /* Intel SDM vol. 4: counts SMIs since reset */
#define UNKNOWN       (-1)

static int open_numbered(const char *pattern, int number)
{
	char path[128];

	snprintf(path, sizeof(path), pattern, number);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int64_t read_numbered(const char *pattern, int number)
{
	char path[128];
	int64_t value;

	snprintf(path, sizeof(path), pattern, number);
	return slurp_int(path, &value) == 0 ? value : UNKNOWN;
}

static int64_t throttle_count(int cpu)
{
	return read_numbered(CPU_DIR "thermal_throttle/core_throttle_count", cpu);
}

static bool is_intel(void)
{
	char text[2048];

	return slurp("/proc/cpuinfo", text, sizeof(text)) > 0 &&
	       strstr(text, "GenuineIntel");
}

/* One CPU is enough: an SMI stops them all. */
static int64_t smi_count(int cpu)
{
	int fd = is_intel() ? open_numbered("/dev/cpu/%d/msr", cpu) : -1;
	uint64_t value;
	bool ok;

	if (fd < 0)
		return UNKNOWN;
	ok = pread(fd, &value, sizeof(value), MSR_SMI_COUNT) == sizeof(value);
	close(fd);
	return ok ? (int64_t)(value & UINT32_MAX) : UNKNOWN;
}

bool sensors_have_smi(void)
{
	return smi_count(0) != UNKNOWN;
}

static void open_zone(struct sensors *s, int number)
{
	char path[128];
	char *name = s->zone_name[s->zones];
	int fd = open_numbered("/sys/class/thermal/thermal_zone%d/temp", number);
	long n;

	if (fd < 0)
		return;
	snprintf(path, sizeof(path), "/sys/class/thermal/thermal_zone%d/type", number);
	n = slurp(path, name, sizeof(s->zone_name[0]) - 8);
	if (n <= 0)
		n = snprintf(name, sizeof(s->zone_name[0]), "zone");
	name[strcspn(name, "\n")] = '\0';
	/* two zones may share a type */
	n = (long)strlen(name);
	snprintf(name + n, sizeof(s->zone_name[0]) - (size_t)n, "/%d", number);
	s->zone_fd[s->zones++] = fd;
}

void sensors_open(struct sensors *s, const struct cpulist *cpus)
{
	s->cpus = *cpus;
	s->zones = 0;
	for (int cpu = cpulist_next(cpus, 0); cpu >= 0;
	     cpu = cpulist_next(cpus, (unsigned int)cpu + 1)) {
		s->freq_fd[cpu] =
			open_numbered(CPU_DIR "cpufreq/scaling_cur_freq", cpu);
		s->throttles_before[cpu] = throttle_count(cpu);
	}
	for (int i = 0; i < SENSORS_MAX_ZONES; i++)
		open_zone(s, i);
	s->smi_before = smi_count(cpulist_next(cpus, 0));
}

void sensors_close(struct sensors *s)
{
	for (int cpu = cpulist_next(&s->cpus, 0); cpu >= 0;
	     cpu = cpulist_next(&s->cpus, (unsigned int)cpu + 1))
		if (s->freq_fd[cpu] >= 0)
			close(s->freq_fd[cpu]);
	for (unsigned int i = 0; i < s->zones; i++)
		close(s->zone_fd[i]);
}

/* Some sensors fail now and then (a sleeping device): that second has no value. */
static void emit_reading(struct emit *e, const char *key, int fd)
{
	char text[32];

	if (slurp_fd(fd, text, sizeof(text)) > 0)
		emit_int(e, key, strtoll(text, NULL, 10));
}

void sensors_emit(struct sensors *s, struct emit *e)
{
	char key[16];

	emit_open(e, "freq_khz", '{');
	for (int cpu = cpulist_next(&s->cpus, 0); cpu >= 0;
	     cpu = cpulist_next(&s->cpus, (unsigned int)cpu + 1)) {
		if (s->freq_fd[cpu] < 0)
			continue;
		snprintf(key, sizeof(key), "%d", cpu);
		emit_reading(e, key, s->freq_fd[cpu]);
	}
	emit_close(e, '}');

	emit_open(e, "temp_mc", '{');
	for (unsigned int i = 0; i < s->zones; i++)
		emit_reading(e, s->zone_name[i], s->zone_fd[i]);
	emit_close(e, '}');
}

void sensors_emit_counters(struct sensors *s, struct emit *e)
{
	int first = cpulist_next(&s->cpus, 0);
	int64_t smi = smi_count(first);
	char key[16];

	if (s->throttles_before[first] == UNKNOWN) {
		emit_null(e, "throttle_counts");
	} else {
		emit_open(e, "throttle_counts", '{');
		for (int cpu = first; cpu >= 0;
		     cpu = cpulist_next(&s->cpus, (unsigned int)cpu + 1)) {
			int64_t count = throttle_count(cpu) - s->throttles_before[cpu];

			snprintf(key, sizeof(key), "%d", cpu);
			emit_int(e, key, count > 0 ? count : 0);
		}
		emit_close(e, '}');
	}

	if (smi == UNKNOWN || s->smi_before == UNKNOWN)
		emit_null(e, "smi_count");
	else
		emit_int(e, "smi_count", (smi - s->smi_before) & UINT32_MAX);
}
