/* SPDX-License-Identifier: MIT */
#include "journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slurp.h"

#define FILE_PREFIX "journal."
#define MAX_LINES   1100 /* a governor for each of 1024 CPUs, and some */
#define MAX_BYTES   (MAX_LINES * 60)

void journal_init(struct journal *j)
{
	*j = (struct journal){ .fd = -1 };
}

/* The directory must be ours alone: what is in it will be believed. */
static int make_dir(const char *dir)
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

/*
 * One agent at a time makes, changes or replays journals: otherwise one could replay and
 * remove a journal that another has just made, or two could take each other's value of a
 * knob for the old one. Returns a descriptor to close, or -errno.
 */
static int lock_dir(const char *dir)
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

/* The caller has locked the directory. O_EXCL: the same number may be alive in another
 * pid namespace, or may have left a journal that could not be replayed. */
static int open_own(struct journal *j, const char *dir)
{
	snprintf(j->path, sizeof(j->path), "%s/" FILE_PREFIX "%d", dir, (int)getpid());
	j->fd = open(j->path,
		     O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
		     0600);
	if (j->fd < 0)
		return -errno;
	return flock(j->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

struct entry {
	char knob[32];
	int index;
	char old[KNOB_VALUE_MAX];
};

/* Reads the whole lines of a journal; a torn last line was never followed by a change. */
static int read_entries(int fd, struct entry *entry, int max)
{
	char text[MAX_BYTES];
	int count = 0;

	if (slurp_fd(fd, text, sizeof(text)) < 0)
		return 0;
	for (char *line = text, *end; (end = strchr(line, '\n')) && count < max;
	     line = end + 1) {
		struct entry *e = &entry[count];

		*end = '\0';
		if (sscanf(line, "%31s %d %63s", e->knob, &e->index, e->old) == 3 &&
		    knob_known(e->knob) && knob_value_ok(e->old) && e->index >= 0)
			count++;
	}
	return count;
}

static bool other_holds(const char *dir, const struct journal *own,
			const struct knob_place *place)
{
	struct entry entry[MAX_LINES];
	DIR *d = opendir(dir);
	struct dirent *file;
	bool held = false;

	while (d && !held && (file = readdir(d))) {
		char path[400];
		int fd, count;

		snprintf(path, sizeof(path), "%s/%s", dir, file->d_name);
		if (strncmp(file->d_name, FILE_PREFIX, strlen(FILE_PREFIX)) != 0 ||
		    strcmp(path, own->path) == 0)
			continue;
		fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		count = read_entries(fd, entry, MAX_LINES);
		for (int i = 0; i < count; i++)
			held |= entry[i].index == place->index &&
				strcmp(entry[i].knob, place->name) == 0;
		close(fd);
	}
	if (d)
		closedir(d);
	return held;
}

/* The caller has locked the directory. */
static int write_down_and_set(struct journal *j, const char *dir,
			      const struct knob_place *place, const char *value)
{
	char old[KNOB_VALUE_MAX], line[160];
	int size, err;

	err = j->fd < 0 ? open_own(j, dir) : 0;
	if (err)
		return err;
	if (other_holds(dir, j, place))
		return -EBUSY;
	err = knob_read(place, old);
	if (err)
		return err;
	if (!knob_value_ok(old))
		return -EINVAL;
	if (strcmp(old, value) == 0)
		return 0;

	size = snprintf(line, sizeof(line), "%s %d %s\n", place->name, place->index,
			old);
	errno = ENOSPC; /* of a short write */
	if (write(j->fd, line, (size_t)size) != size || fsync(j->fd) < 0)
		return -errno;
	return knob_write(place, value);
}

int journal_set_knob(struct journal *j, const char *dir, const struct knob_place *place,
		     const char *value)
{
	int lock, err;

	if (!knob_known(place->name) || !knob_value_ok(value))
		return -EINVAL;
	err = make_dir(dir);
	if (err)
		return err;
	lock = lock_dir(dir);
	if (lock < 0)
		return lock;
	err = write_down_and_set(j, dir, place, value);
	close(lock);
	return err;
}

/* A change that the kernel refused has left nothing to put back, and a try at it would
 * be refused as well, now and at every later start. */
static int put_back(const struct knob_place *place, const char *old)
{
	char now[KNOB_VALUE_MAX];

	if (knob_read(place, now) == 0 && strcmp(now, old) == 0)
		return 0;
	return knob_write(place, old);
}

static int restore_entries(int fd, const char *root,
			   void (*told)(void *context, const char *knob), void *context)
{
	struct entry entry[MAX_LINES];
	int count = read_entries(fd, entry, MAX_LINES);
	int failed = 0;

	while (count-- > 0) {
		const struct knob_place place = { root, entry[count].knob,
						  entry[count].index };

		if (put_back(&place, entry[count].old))
			failed++;
		else if (told)
			told(context, entry[count].knob);
	}
	return failed;
}

int journal_restore(struct journal *j, const char *root)
{
	int failed;

	if (j->fd < 0)
		return 0;
	failed = restore_entries(j->fd, root, NULL, NULL);
	if (!failed)
		unlink(j->path);
	close(j->fd);
	journal_init(j);
	return failed;
}

static int replay_file(const char *path, const char *root,
		       void (*told)(void *context, const char *knob), void *context)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int left = 0;
	struct stat st;

	if (fd < 0)
		return 0;
	/* A living process holds its lock. One that has restored and removed its journal
	 * since we opened it has left us a file without a name. */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 &&
	    S_ISREG(st.st_mode) && st.st_nlink > 0) {
		left = restore_entries(fd, root, told, context);
		if (!left)
			unlink(path);
	}
	close(fd);
	return left;
}

int journal_replay(const char *dir, const char *root,
		   void (*told)(void *context, const char *knob), void *context)
{
	DIR *d;
	struct dirent *file;
	int lock, failed;

	if (access(dir, F_OK) < 0)
		return 0; /* nothing was ever changed here */
	failed = make_dir(dir);
	if (failed)
		return geteuid() == 0 ? failed
				      : 0; /* others cannot change knobs either */
	lock = lock_dir(dir);
	if (lock < 0)
		return lock;

	d = opendir(dir);
	while (d && (file = readdir(d))) {
		char path[400];

		if (strncmp(file->d_name, FILE_PREFIX, strlen(FILE_PREFIX)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, file->d_name);
		failed += replay_file(path, root, told, context);
	}
	if (d)
		closedir(d);
	close(lock);
	return failed;
}
