/* SPDX-License-Identifier: MIT */
#include "machine/counters.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/cpulist.h"
#include "thread/clock.h"

#define MAX_CPUS CPULIST_MAX_CPUS

int snapshot_take(const char *path, struct snapshot *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err;

	*out = (struct snapshot){ 0 };
	if (fd < 0)
		return -errno;
	err = snapshot_read(fd, out);
	close(fd);
	return err;
}

int snapshot_read(int fd, struct snapshot *out)
{
	size_t room = 0;
	ssize_t n = 1;

	*out = (struct snapshot){ 0 };
	while (n > 0) {
		if (room - out->size < 4096) {
			char *larger = realloc(out->text, room += 65536);

			if (!larger)
				break;
			out->text = larger;
		}
		n = read(fd, out->text + out->size, room - out->size - 1);
		if (n > 0)
			out->size += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	if (n != 0) {
		snapshot_free(out);
		return -ENOMEM;
	}
	out->text[out->size] = '\0';
	return 0;
}

void snapshot_free(struct snapshot *s)
{
	free(s->text);
	*s = (struct snapshot){ 0 };
}

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

/* The CPU of each column, from the header line: offline CPUs have none. */
struct columns {
	unsigned int count;
	unsigned int cpu[MAX_CPUS];
};

static void read_header(const char *text, struct columns *out)
{
	const char *end = next_line(text);
	const char *s = text;

	out->count = 0;
	while ((s = strstr(s, "CPU")) && s < end && out->count < MAX_CPUS) {
		unsigned long cpu = strtoul(s + 3, (char **)&s, 10);

		if (cpu >= MAX_CPUS)
			break;
		out->cpu[out->count++] = (unsigned int)cpu;
	}
}

struct row {
	char id[32];
	const char *values;
};

static bool read_row(const char *line, struct row *out)
{
	const char *colon;
	size_t size;

	while (*line == ' ')
		line++;
	colon = strchr(line, ':');
	if (!colon || colon >= next_line(line))
		return false;

	size = (size_t)(colon - line);
	if (size == 0 || size >= sizeof(out->id))
		return false;
	memcpy(out->id, line, size);
	out->id[size] = '\0';
	out->values = colon + 1;
	return true;
}

/* Searches on from where the last row was found: rows keep their order, and a machine
 * with hundreds of CPUs has megabytes of them. NULL if there is none. */
static const char *find_row(const struct snapshot *in, const char *id,
			    const char **from)
{
	const char *const starts[] = { *from, in->text };
	struct row row;

	for (int pass = 0; pass < 2; pass++) {
		for (const char *s = starts[pass]; *s; s = next_line(s)) {
			if (!read_row(s, &row) || strcmp(row.id, id) != 0)
				continue;
			*from = next_line(s);
			return row.values;
		}
	}
	return NULL;
}

/* Moves past one number of the row; false at its end or where the name begins. */
static bool take_count(const char **s, uint64_t *out)
{
	while (**s == ' ')
		(*s)++;
	if (!isdigit((unsigned char)**s))
		return false;
	*out = strtoull(*s, (char **)s, 10);
	return **s == ' ' || **s == '\n' || **s == '\0';
}

static void emit_name(struct emit *e, const char *values)
{
	size_t size;
	uint64_t ignored;
	const char *s = values;

	while (take_count(&s, &ignored))
		values = s;
	while (*values == ' ')
		values++;
	size = strcspn(values, "\n");
	emit_bytes(e, "name", values, size < 200 ? size : 200);
}

/* The counts of a row by CPU, 0 for those without a column. Returns how many there were:
 * rows like ERR have a single one, which is of no CPU. */
static unsigned int read_counts(const char *values, const struct columns *columns,
				uint64_t count[MAX_CPUS])
{
	unsigned int n = 0;
	uint64_t one;

	memset(count, 0, MAX_CPUS * sizeof(count[0]));
	while (values && n < columns->count && take_count(&values, &one))
		count[columns->cpu[n++]] = one;
	return n;
}

/* The kernel's counters have 32 bits and wrap; one that goes back further began anew. */
static uint64_t grown(uint64_t old, uint64_t now)
{
	uint32_t wrapped = (uint32_t)(now - old);

	if (now >= old)
		return now - old;
	return wrapped <= INT32_MAX ? wrapped : now;
}

struct table {
	const struct snapshot *text;
	struct columns columns;
	const char *next_row; /* where find_row() goes on */
	uint64_t count[MAX_CPUS];
};

static void open_table(struct table *t, const struct snapshot *text)
{
	t->text = text;
	read_header(text->text, &t->columns);
	t->next_row = next_line(text->text);
}

static void emit_row(struct emit *e, const struct row *row, struct table *before,
		     struct table *after)
{
	const char *old_row = find_row(before->text, row->id, &before->next_row);
	unsigned int n = read_counts(row->values, &after->columns, after->count);
	bool open = false;

	read_counts(old_row, &before->columns, before->count);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int cpu = after->columns.cpu[i];
		uint64_t more = grown(before->count[cpu], after->count[cpu]);
		char key[16];

		if (more == 0)
			continue;
		if (!open) {
			emit_open(e, NULL, '{');
			emit_text(e, "id", row->id);
			emit_name(e, row->values);
			emit_open(e, "per_cpu", '{');
			open = true;
		}
		snprintf(key, sizeof(key), "%u", cpu);
		if (n == after->columns.count)
			emit_int(e, key, (int64_t)more);
	}
	if (open) {
		emit_close(e, '}');
		emit_close(e, '}');
	}
}

void counters_emit_delta(struct emit *e, const char *key, const struct snapshot *before,
			 const struct snapshot *after)
{
	struct table old, now;
	struct row row;

	emit_open(e, key, '[');
	if (before->size && after->size) {
		open_table(&old, before);
		open_table(&now, after);
		for (const char *s = now.next_row; *s; s = next_line(s))
			if (read_row(s, &row))
				emit_row(e, &row, &old, &now);
	}
	emit_close(e, ']');
}

/* Order of the columns in /proc/stat. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

static bool read_cpu_line(const char *line, unsigned int *cpu, uint64_t ticks[COLUMNS])
{
	if (strncmp(line, "cpu", 3) != 0 || !isdigit((unsigned char)line[3]))
		return false;
	*cpu = (unsigned int)strtoul(line + 3, (char **)&line, 10);
	for (int i = 0; i < COLUMNS; i++)
		if (!take_count(&line, &ticks[i]))
			return false;
	return true;
}

static bool find_cpu_line(const struct snapshot *in, unsigned int cpu,
			  uint64_t ticks[COLUMNS])
{
	unsigned int found;

	for (const char *s = in->text; *s; s = next_line(s))
		if (read_cpu_line(s, &found, ticks) && found == cpu)
			return true;
	return false;
}

void counters_emit_cpu_times(struct emit *e, const struct snapshot *before,
			     const struct snapshot *after)
{
	static const struct {
		const char *key;
		int first, second;
	} sums[] = {
		{ "steal_ns", STEAL, -1 },     { "irq_ns", IRQ, -1 },
		{ "softirq_ns", SOFTIRQ, -1 }, { "user_ns", USER, NICE },
		{ "system_ns", SYSTEM, -1 },   { "idle_ns", IDLE, IOWAIT },
	};
	const int64_t tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);
	uint64_t old[COLUMNS], now[COLUMNS];
	unsigned int cpu;

	emit_open(e, "cpu_times", '[');
	for (const char *s = after->size && before->size ? after->text : ""; *s;
	     s = next_line(s)) {
		if (!read_cpu_line(s, &cpu, now) || !find_cpu_line(before, cpu, old))
			continue;
		emit_open(e, NULL, '{');
		emit_int(e, "cpu", cpu);
		for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
			int a = sums[i].first, b = sums[i].second;
			int64_t ticks = (int64_t)(now[a] - old[a]);

			if (b >= 0)
				ticks += (int64_t)(now[b] - old[b]);
			/* idle and iowait are known to go backwards by a tick */
			emit_int(e, sums[i].key, ticks > 0 ? ticks * tick_ns : 0);
		}
		emit_close(e, '}');
	}
	emit_close(e, ']');
}

/* Columns of a CPU in /proc/schedstat since version 15 (Linux 2.6.30). */
enum { RAN_NS = 6, WAITED_NS, TASKS, SCHED_COLUMNS };

static bool read_sched_line(const char *line, unsigned int *cpu,
			    uint64_t count[SCHED_COLUMNS])
{
	if (strncmp(line, "cpu", 3) != 0 || !isdigit((unsigned char)line[3]))
		return false;
	*cpu = (unsigned int)strtoul(line + 3, (char **)&line, 10);
	for (int i = 0; i < SCHED_COLUMNS; i++)
		if (!take_count(&line, &count[i]))
			return false;
	return true;
}

static bool find_sched_line(const struct snapshot *in, unsigned int cpu,
			    uint64_t count[SCHED_COLUMNS])
{
	unsigned int found;

	for (const char *s = in->text; *s; s = next_line(s))
		if (read_sched_line(s, &found, count) && found == cpu)
			return true;
	return false;
}

void counters_emit_runs(struct emit *e, const struct snapshot *before,
			const struct snapshot *after)
{
	uint64_t old[SCHED_COLUMNS], now[SCHED_COLUMNS];
	unsigned int cpu;

	emit_open(e, "schedstat", '[');
	for (const char *s = after->size && before->size ? after->text : ""; *s;
	     s = next_line(s)) {
		if (!read_sched_line(s, &cpu, now) ||
		    !find_sched_line(before, cpu, old))
			continue;
		emit_open(e, NULL, '{');
		emit_int(e, "cpu", cpu);
		emit_int(e, "tasks", (int64_t)(now[TASKS] - old[TASKS]));
		emit_int(e, "ran_ns", (int64_t)(now[RAN_NS] - old[RAN_NS]));
		emit_int(e, "waited_ns", (int64_t)(now[WAITED_NS] - old[WAITED_NS]));
		emit_close(e, '}');
	}
	emit_close(e, ']');
}

static bool read_switches(const struct snapshot *in, uint64_t *out)
{
	for (const char *s = in->size ? in->text : ""; *s; s = next_line(s)) {
		if (strncmp(s, "ctxt ", 5) != 0)
			continue;
		s += 5;
		return take_count(&s, out);
	}
	return false;
}

int64_t counters_switches(const struct snapshot *before, const struct snapshot *after)
{
	uint64_t old, now;

	if (!read_switches(before, &old) || !read_switches(after, &now))
		return -1;
	return (int64_t)(now - old);
}
