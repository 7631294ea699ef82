/* SPDX-License-Identifier: MIT */
#include "settings/applied.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "journal/journalfile.h"

#define PATH_MAX_BYTES 256

struct paths {
	char file[PATH_MAX_BYTES];
	char new_file[PATH_MAX_BYTES];
};

static struct paths paths_in(const char *dir)
{
	struct paths p;

	snprintf(p.file, sizeof(p.file), "%s/applied", dir);
	snprintf(p.new_file, sizeof(p.new_file), "%s/applied.new", dir);
	return p;
}

/* Nothing was applied: an empty text. */
static int read_file(const char *path, struct journal_text *text)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int err;

	*text = (struct journal_text){ 0 };
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	err = journalfile_read(fd, text);
	close(fd);
	return err;
}

/* The last entry first; so they are taken off the text and written from the end. */
struct entries {
	struct journal_entry *at;
	size_t count;
};

static int add_entry(struct entries *all, const struct journal_entry *entry)
{
	struct journal_entry *grown =
		realloc(all->at, (all->count + 1) * sizeof(*entry));

	if (!grown)
		return -ENOMEM;
	all->at = grown;
	all->at[all->count++] = *entry;
	return 0;
}

static int add_text(struct entries *all, struct journal_text *text)
{
	struct journal_entry entry;
	int err = 0;

	while (!err && journalfile_last(text, &entry))
		err = add_entry(all, &entry);
	return err;
}

static int write_entries(const struct paths *p, const struct entries *all)
{
	int fd = open(p->new_file,
		      O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
		      0600);
	int err = 0;

	if (fd < 0)
		return -errno;
	for (size_t i = all->count; i-- > 0 && !err;)
		err = journalfile_append(fd, &all->at[i]);
	close(fd);
	if (!err && rename(p->new_file, p->file) < 0)
		err = -errno;
	if (err)
		unlink(p->new_file);
	return err;
}

/* The caller has locked the directory. */
static int keep(struct journal *j, const char *dir)
{
	const struct paths p = paths_in(dir);
	struct journal_text before, now;
	struct entries all = { 0 };
	int err = read_file(p.file, &before);

	if (!err)
		err = journalfile_read(j->fd, &now);
	else
		now = (struct journal_text){ 0 };
	if (!err)
		err = add_text(&all, &now);
	if (!err)
		err = add_text(&all, &before);
	if (!err && all.count > 0)
		err = write_entries(&p, &all);
	free(all.at);
	journalfile_free(&before);
	journalfile_free(&now);
	return err;
}

int applied_keep(struct journal *j, const char *dir)
{
	int lock, err;

	if (j->fd < 0)
		return 0;
	lock = journalfile_lock_dir(dir);
	if (lock < 0)
		return lock;
	err = keep(j, dir);
	if (!err) {
		/* killed before this, the next start takes the changes back: then what
		 * was just kept is put back already when it is asked back */
		unlink(j->path);
		close(j->fd);
		journal_init(j);
	}
	close(lock);
	return err;
}

/* Returns how many are left, or -errno. */
static int restore_all(const char *dir, const char *root, struct journal_text *text,
		       const struct applied_visitor *v)
{
	const struct paths p = paths_in(dir);
	struct journal_entry entry;
	struct entries left = { 0 };
	int err = 0, count;

	while (!err && journalfile_last(text, &entry)) {
		int refused = journalfile_held(dir, "", entry.knob, entry.index)
				      ? JOURNAL_HELD
				      : journalfile_put_back(root, &entry);

		if (refused) {
			v->refused(v->context, &entry, refused);
			err = add_entry(&left, &entry);
		} else {
			v->restored(v->context, &entry);
		}
	}
	if (!err && left.count > 0)
		err = write_entries(&p, &left);
	else if (!err && unlink(p.file) < 0 && errno != ENOENT)
		err = -errno;
	count = (int)left.count;
	free(left.at);
	return err ? err : count;
}

int applied_restore(const char *dir, const char *root,
		    const struct applied_visitor *visitor)
{
	struct journal_text text;
	int lock, result;

	if (access(dir, F_OK) < 0)
		return errno == ENOENT ? 0 : -errno;
	result = journalfile_make_dir(dir);
	if (result)
		return result;
	lock = journalfile_lock_dir(dir);
	if (lock < 0)
		return lock;
	result = read_file(paths_in(dir).file, &text);
	if (!result)
		result = restore_all(dir, root, &text, visitor);
	journalfile_free(&text);
	close(lock);
	return result;
}
