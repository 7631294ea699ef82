/* SPDX-License-Identifier: MIT */
#include "journal/journalfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/slurp.h"

#define MAX_BYTES (1024 * 1024) /* some 30,000 changes */

int journalfile_make_dir(const char *dir)
{
	struct stat st;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (lstat(dir, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return -EPERM;
	return 0;
}

int journalfile_lock_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX) < 0) {
		int err = errno;

		if (err == EINTR) /* others hold it for milliseconds */
			continue;
		close(fd);
		return -err;
	}
	return fd;
}

int journalfile_read(int fd, struct journal_text *text)
{
	struct stat st;
	char *end;
	long n;

	*text = (struct journal_text){ 0 };
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > MAX_BYTES)
		return -EFBIG;
	text->bytes = malloc((size_t)st.st_size + 1);
	if (!text->bytes)
		return -ENOMEM;
	n = slurp_fd(fd, text->bytes, (size_t)st.st_size + 1);
	if (n < 0)
		return (int)n;
	end = strrchr(text->bytes, '\n');
	text->size = end ? (size_t)(end + 1 - text->bytes) : 0;
	return 0;
}

void journalfile_free(struct journal_text *text)
{
	free(text->bytes);
	*text = (struct journal_text){ 0 };
}

/* The last line, without its end; the text then ends before it. */
static char *take_line(struct journal_text *text)
{
	size_t begin = text->size - 1;

	text->bytes[begin] = '\0';
	while (begin > 0 && text->bytes[begin - 1] != '\n')
		begin--;
	text->size = begin;
	return text->bytes + begin;
}

bool journalfile_last(struct journal_text *text, struct journal_entry *entry)
{
	while (text->size > 0) {
		const char *line = take_line(text);

		if (sscanf(line, "%31s %d %255s", entry->knob, &entry->index,
			   entry->old) == 3 &&
		    knob_known(entry->knob) && knob_value_ok(entry->old) &&
		    entry->index >= 0)
			return true;
	}
	return false;
}

int journalfile_append(int fd, const struct journal_entry *entry)
{
	char line[KNOB_NAME_MAX + KNOB_VALUE_MAX + 16];
	int size = snprintf(line, sizeof(line), "%s %d %s\n", entry->knob, entry->index,
			    entry->old);
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size + size > MAX_BYTES) /* it could not be read again */
		return -EFBIG;
	errno = ENOSPC; /* of a short write */
	return write(fd, line, (size_t)size) != size || fsync(fd) < 0 ? -errno : 0;
}

static bool has_entry(int fd, const char *knob, int index)
{
	struct journal_entry entry;
	struct journal_text text;
	bool found = false;

	if (journalfile_read(fd, &text) == 0)
		while (!found && journalfile_last(&text, &entry))
			found = entry.index == index && strcmp(entry.knob, knob) == 0;
	journalfile_free(&text);
	return found;
}

bool journalfile_held(const char *dir, const char *own, const char *knob, int index)
{
	DIR *d = opendir(dir);
	struct dirent *file;
	bool held = false;

	while (d && !held && (file = readdir(d))) {
		char path[400];
		int fd;

		snprintf(path, sizeof(path), "%s/%s", dir, file->d_name);
		if (strncmp(file->d_name, JOURNALFILE_PREFIX,
			    strlen(JOURNALFILE_PREFIX)) != 0 ||
		    strcmp(path, own) == 0)
			continue;
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		held = has_entry(fd, knob, index);
		close(fd);
	}
	if (d)
		closedir(d);
	return held;
}

int journalfile_put_back(const char *root, const struct journal_entry *entry)
{
	const struct knob_place place = { root, entry->knob, entry->index };
	char now[KNOB_VALUE_MAX];
	int err = knob_read(&place, now);

	if (err == KNOB_GONE || (err == 0 && strcmp(now, entry->old) == 0))
		return 0; /* a setting goes with the interface or thread that has it */
	return knob_write(&place, entry->old);
}
