/* SPDX-License-Identifier: MIT */
#include "machine/taskfile.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_FIELD 4 /* as proc_pid_stat(5) counts; 1 to 3 are pid, name and state */
#define LAST_FIELD  41

/* By hand: for 20,000 threads, scanf() costs as much as the kernel's part. */
static bool take_number(const char **at, int64_t *out)
{
	const char *s = *at;
	bool negative;
	uint64_t value = 0;

	while (*s == ' ')
		s++;
	negative = *s == '-';
	s += negative;
	if (!isdigit((unsigned char)*s))
		return false;
	while (isdigit((unsigned char)*s))
		value = value * 10 + (uint64_t)(*s++ - '0');
	*out = (int64_t)(negative ? -value : value);
	*at = s;
	return true;
}

int taskstat_parse(const char *text, struct taskstat *out)
{
	/* The name may hold anything, also ") R 1 ("; the last ')' ends it. */
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	int64_t field[LAST_FIELD + 1];
	const char *at;

	if (!open || !close || close < open || close[1] != ' ' || !close[2])
		return -EINVAL;
	at = close + 3;
	for (int i = FIRST_FIELD; i <= LAST_FIELD; i++)
		if (!take_number(&at, &field[i]))
			return -EINVAL;
	*out = (struct taskstat){
		.name = open + 1,
		.name_size = (size_t)(close - open - 1),
		.state = close[2],
		.flags = (unsigned long)field[9],
		.minor_faults = field[10],
		.major_faults = field[12],
		.user_ticks = field[14],
		.system_ticks = field[15],
		.effective = (int)field[18],
		.nice = (int)field[19],
		.threads = field[20],
		.start_ticks = field[22],
		.last_cpu = (int)field[39],
		.priority = (unsigned int)field[40],
		.policy = (unsigned int)field[41],
	};
	return 0;
}

const char *taskstatus_find(const char *text, const char *key, size_t *size)
{
	size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) == 0 && line[length] == ':') {
			line += length + 1;
			line += strspn(line, " \t");
			*size = strcspn(line, "\n");
			return line;
		}
	}
	return NULL;
}

int taskschedstat_parse(const char *text, int64_t *cpu_time_ns)
{
	const char *at = text;
	int64_t waiting_ns, slices;

	if (!take_number(&at, cpu_time_ns) || !take_number(&at, &waiting_ns) ||
	    !take_number(&at, &slices))
		return -EINVAL;
	return *cpu_time_ns || waiting_ns || slices ? 0 : -EINVAL;
}

/* Whether "cpu" is in a list as "cpu,cpuacct". */
static bool has_cpu(const char *list, size_t size)
{
	const char *end = list + size;

	while (list < end) {
		size_t length = strcspn(list, ",:");

		if (length == 3 && memcmp(list, "cpu", 3) == 0)
			return true;
		list += length + 1;
	}
	return false;
}

const char *taskcgroup_find(const char *text, size_t *size)
{
	const char *found = NULL;

	/* lines as "0::/path" and "4:cpu,cpuacct:/path"; a newline in a path is \012 */
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");
		const char *list = memchr(line, ':', length);
		const char *path = NULL;

		if (list)
			path = memchr(list + 1, ':',
				      length - (size_t)(list + 1 - line));
		if (path) {
			size_t listed = (size_t)(path - list - 1);
			bool cpu = has_cpu(list + 1, listed);

			if (cpu || !listed) {
				found = path + 1;
				*size = length - (size_t)(path + 1 - line);
			}
			if (cpu)
				return found;
		}
		line += length + (line[length] == '\n');
	}
	return found;
}
