/* SPDX-License-Identifier: MIT */
#include "journal/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal/journalfile.h"

void journal_init(struct journal *j)
{
	*j = (struct journal){ .fd = -1, .tried_at = -1 };
}

/* The caller has locked the directory. O_EXCL: the same number may be alive in another
 * pid namespace, or may have left a journal that could not be replayed. */
static int open_own(struct journal *j, const char *dir)
{
	snprintf(j->path, sizeof(j->path), "%s/" JOURNALFILE_PREFIX "%d", dir,
		 (int)getpid());
	j->fd = open(j->path,
		     O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
		     0600);
	if (j->fd < 0)
		return -errno;
	return flock(j->fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
}

/* The caller has locked the directory. */
static int write_down_and_set(struct journal *j, const char *dir,
			      const struct knob_place *place, const char *value)
{
	struct journal_entry entry = { .index = place->index };
	struct stat st;
	int err;

	err = j->fd < 0 ? open_own(j, dir) : 0;
	if (err)
		return err;
	if (journalfile_held(dir, j->path, place->name, place->index))
		return JOURNAL_HELD;
	err = knob_read(place, entry.old);
	if (err)
		return err;
	if (!knob_value_ok(entry.old))
		return -EINVAL;
	if (strcmp(entry.old, value) == 0)
		return 0;

	snprintf(entry.knob, sizeof(entry.knob), "%s", place->name);
	if (fstat(j->fd, &st) < 0)
		return -errno;
	j->tried_at = st.st_size;
	err = journalfile_append(j->fd, &entry);
	return err ? err : knob_write(place, value);
}

int journal_set_knob(struct journal *j, const char *dir, const struct knob_place *place,
		     const char *value)
{
	int lock, err;

	j->tried_at = -1;
	if (!knob_known(place->name) || !knob_value_ok(value))
		return -EINVAL;
	err = journalfile_make_dir(dir);
	if (err)
		return err;
	lock = journalfile_lock_dir(dir);
	if (lock < 0)
		return lock;
	err = write_down_and_set(j, dir, place, value);
	close(lock);
	return err;
}

int journal_take_back(struct journal *j, const char *root)
{
	struct journal_entry entry;
	struct journal_text text;
	int err;

	if (j->tried_at < 0)
		return 0;
	err = journalfile_read(j->fd, &text);
	/* a torn line was never followed by a change */
	if (!err && text.size > (size_t)j->tried_at && journalfile_last(&text, &entry))
		err = journalfile_put_back(root, &entry);
	journalfile_free(&text);
	if (!err && ftruncate(j->fd, j->tried_at) < 0)
		err = -errno;
	if (!err)
		j->tried_at = -1;
	return err;
}

/* The last change first. Returns the number of knobs that could not be put back. */
static int restore_entries(int fd, const char *root, journal_told *told, void *context)
{
	struct journal_entry entry;
	struct journal_text text;
	int failed = journalfile_read(fd, &text) ? 1 : 0;

	while (journalfile_last(&text, &entry)) {
		if (journalfile_put_back(root, &entry))
			failed++;
		else if (told)
			told(context, &entry);
	}
	journalfile_free(&text);
	return failed;
}

int journal_restore(struct journal *j, const char *root, journal_told *told,
		    void *context)
{
	int failed;

	if (j->fd < 0)
		return 0;
	failed = restore_entries(j->fd, root, told, context);
	if (!failed)
		unlink(j->path);
	close(j->fd);
	journal_init(j);
	return failed;
}

static int replay_file(const char *path, const char *root, journal_told *told,
		       void *context)
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

int journal_replay(const char *dir, const char *root, journal_told *told, void *context)
{
	DIR *d;
	struct dirent *file;
	int lock, failed;

	if (access(dir, F_OK) < 0)
		return 0; /* nothing was ever changed here */
	failed = journalfile_make_dir(dir);
	if (failed)
		return geteuid() == 0 ? failed
				      : 0; /* others cannot change knobs either */
	lock = journalfile_lock_dir(dir);
	if (lock < 0)
		return lock;

	d = opendir(dir);
	while (d && (file = readdir(d))) {
		char path[400];

		if (strncmp(file->d_name, JOURNALFILE_PREFIX,
			    strlen(JOURNALFILE_PREFIX)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, file->d_name);
		failed += replay_file(path, root, told, context);
	}
	if (d)
		closedir(d);
	close(lock);
	return failed;
}
