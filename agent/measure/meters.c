/* SPDX-License-Identifier: MIT */
#include "measure/meters.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/slurp.h"

#define PATH_ROOM 512

static const char *const keys[] = { "energy_uj", "power_uw", "device_mc" };

/* The first line of a file of a folder; its size, 0 without any. */
static size_t first_line(const char *folder, const char *file, char *text, size_t size)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	text[0] = '\0';
	if (slurp(path, text, size) <= 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	return strlen(text);
}

static void add(struct meters *m, const char *key, const char *folder, const char *file,
		const char *name)
{
	struct meter *one = &m->meter[m->count];
	char path[PATH_ROOM];

	if (m->count == METERS_MAX)
		return;
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	one->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (one->fd < 0)
		return;
	one->key = key;
	snprintf(one->name, sizeof(one->name), "%s", name);
	m->count++;
}

static void add_zone(struct meters *m, const char *folder, const char *id)
{
	char zone[24], name[64];

	if (!first_line(folder, "name", zone, sizeof(zone)))
		return;
	snprintf(name, sizeof(name), "%s/%.36s", zone, id);
	add(m, "energy_uj", folder, "energy_uj", name);
}

/* Whether a file's name is as temp3_input: then its length up to the underscore. */
static int is_input(const char *file, const char *kind, const char *end)
{
	size_t begin = strlen(kind), digits;

	if (strncmp(file, kind, begin))
		return 0;
	digits = strspn(file + begin, "0123456789");
	if (!digits || digits > 3)
		return 0;
	return strcmp(file + begin + digits, end) ? 0 : (int)(begin + digits);
}

static void add_input(struct meters *m, const char *key, const char *folder,
		      const char *file, int stem)
{
	const char *number = strrchr(folder, '/');
	char chip[24], label[24], name[64], path[32];

	number += strcspn(number, "0123456789");
	if (!first_line(folder, "name", chip, sizeof(chip)))
		snprintf(chip, sizeof(chip), "hwmon");
	snprintf(path, sizeof(path), "%.*s_label", stem, file);
	if (!first_line(folder, path, label, sizeof(label)))
		snprintf(label, sizeof(label), "%.*s", stem, file);
	/* two devices may have one name */
	snprintf(name, sizeof(name), "%s/%s/%.8s", chip, label, number);
	add(m, key, folder, file, name);
}

static void add_chip(struct meters *m, const char *folder)
{
	struct dirent **file;
	int n = scandir(folder, &file, NULL, alphasort);
	int stem;

	for (int i = 0; i < n; i++) {
		const char *name = file[i]->d_name;

		if ((stem = is_input(name, "temp", "_input")))
			add_input(m, "device_mc", folder, name, stem);
		else if ((stem = is_input(name, "power", "_input")) ||
			 (stem = is_input(name, "power", "_average")))
			add_input(m, "power_uw", folder, name, stem);
		free(file[i]);
	}
	if (n >= 0)
		free(file);
}

static void add_folders(struct meters *m, const char *root, const char *class,
			const char *begin)
{
	char place[PATH_ROOM / 2], folder[PATH_ROOM];
	struct dirent **entry;
	int n;

	snprintf(place, sizeof(place), "%s/sys/class/%s", root, class);
	n = scandir(place, &entry, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		const char *name = entry[i]->d_name;

		snprintf(folder, sizeof(folder), "%s/%.100s", place, name);
		if (strncmp(name, begin, strlen(begin)) == 0) {
			if (strcmp(begin, "hwmon") == 0)
				add_chip(m, folder);
			else if (strchr(name, ':'))
				add_zone(m, folder, name);
		}
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
}

void meters_open(struct meters *m, const char *root)
{
	char path[PATH_ROOM];

	m->count = 0;
	add_folders(m, root, "powercap", "intel-rapl");
	add_folders(m, root, "hwmon", "hwmon");
	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	m->meminfo_fd = open(path, O_RDONLY | O_CLOEXEC);
}

void meters_close(struct meters *m)
{
	for (unsigned int i = 0; i < m->count; i++)
		close(m->meter[i].fd);
	if (m->meminfo_fd >= 0)
		close(m->meminfo_fd);
	m->count = 0;
	m->meminfo_fd = -1;
}

static int64_t line_kb(const char *text, const char *key)
{
	const char *line = strstr(text, key);

	return line ? strtoll(line + strlen(key), NULL, 10) : -1;
}

/* All but what could be had without swapping. */
static void emit_memory(int fd, struct emit *e)
{
	int64_t total_kb, available_kb;
	char text[2048];

	if (fd < 0 || slurp_fd(fd, text, sizeof(text)) <= 0)
		return;
	total_kb = line_kb(text, "MemTotal:");
	available_kb = line_kb(text, "MemAvailable:");
	if (available_kb >= 0 && total_kb >= available_kb)
		emit_int(e, "memory_used_kb", total_kb - available_kb);
}

/* A device that sleeps gives no number: then that second has none of it. */
static void emit_key(const struct meters *m, const char *key, struct emit *e)
{
	bool begun = false;
	char text[32], *end;

	for (unsigned int i = 0; i < m->count; i++) {
		int64_t value;

		if (strcmp(m->meter[i].key, key) ||
		    slurp_fd(m->meter[i].fd, text, sizeof(text)) <= 0)
			continue;
		value = strtoll(text, &end, 10);
		if (end == text)
			continue;
		if (!begun)
			emit_open(e, key, '{');
		begun = true;
		emit_int(e, m->meter[i].name, value);
	}
	if (begun)
		emit_close(e, '}');
}

void meters_emit(const struct meters *m, struct emit *e)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		emit_key(m, keys[i], e);
	emit_memory(m->meminfo_fd, e);
}
