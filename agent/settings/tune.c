/* SPDX-License-Identifier: MIT */
#include "settings/tune.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/slurp.h"
#include "host/version.h"
#include "journal/journal.h"
#include "journal/shieldgroup.h"
#include "settings/applied.h"
#include "thread/clock.h"
#include "thread/rights.h"

#define LOCKDOWN "/sys/kernel/security/lockdown"

struct tuning {
	struct journal journal;
	struct emit *out;
	int64_t applied, already, refused, restored, stuck;
};

/* Lockdown answers EPERM (fs/debugfs/file.c), also where securityfs is not mounted. */
static bool locked_down(const char *path, int err)
{
	char mode[64];

	if (strncmp(path, KNOB_DEBUGFS, strlen(KNOB_DEBUGFS)) != 0)
		return false;
	if (slurp(LOCKDOWN, mode, sizeof(mode)) > 0)
		return !strstr(mode, "[none]");
	return err == -EPERM;
}

/* EIO, and EPERM since some Linux 6 (kernel/irq/proc.c). */
static bool is_managed_irq(const char *path, int err)
{
	return strncmp(path, "/proc/irq/", strlen("/proc/irq/")) == 0 &&
	       (err == -EIO || (err == -EPERM && geteuid() == 0));
}

/* The word of the contract, and in text the reason in words. */
static const char *why_denied(int err, const char *path, char text[OPTIONS_TEXT])
{
	const char *cause = "denied", *why = "not even root may write it";

	if (geteuid() != 0) {
		cause = "capability";
		why = "changing settings of the machine needs root";
	} else if (rights_in_user_namespace()) {
		cause = "container";
		why = "root of a container is not root of the machine: ask its host";
	} else if (locked_down(path, err)) {
		cause = "lockdown";
		why = "kernel lockdown refuses debugfs also to root";
	}
	snprintf(text, OPTIONS_TEXT, "%s", why);
	return cause;
}

static const char *why_refused(int err, const char *path, char text[OPTIONS_TEXT])
{
	static const struct {
		int err;
		const char *cause, *why;
	} reasons[] = {
		{ -ENOENT, "missing", "this machine has no such setting" },
		{ -EROFS, "read-only",
		  "it is mounted read-only, as in a container: ask its host" },
		{ -EINVAL, "value", "the kernel refuses this value" },
		{ -EOVERFLOW, "value", "its value is too long to be written down" },
		{ JOURNAL_HELD, "held",
		  "another running rtscope has changed it: let that end first" },
		{ KNOB_GONE, "missing", "there is no such interface or thread" },
		{ -EOPNOTSUPP, "driver", "the driver does not take it" },
		{ KNOB_DID_NOT_HOLD, "not-held",
		  "the kernel took the value and then showed another" },
	};

	if (is_managed_irq(path, err)) {
		snprintf(text, OPTIONS_TEXT,
			 "its driver manages this interrupt; boot with "
			 "isolcpus=managed_irq,LIST");
		return "managed";
	}
	if (err == SHIELDGROUP_INVALID) {
		snprintf(text, OPTIONS_TEXT, "the kernel answered: %s",
			 shieldgroup_answer());
		return "partition";
	}
	if (err == -EACCES || err == -EPERM)
		return why_denied(err, path, text);
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].err != err)
			continue;
		snprintf(text, OPTIONS_TEXT, "%s", reasons[i].why);
		return reasons[i].cause;
	}
	snprintf(text, OPTIONS_TEXT, "%s", strerror(-err));
	return "refused";
}

static void emit_place(struct emit *out, const char *type, const char *knob, int index)
{
	emit_begin(out, type);
	emit_text(out, "knob", knob);
	emit_int(out, "index", index);
}

static void emit_refused(struct tuning *t, const struct knob_place *place,
			 const char *value, int err)
{
	char path[256] = "", text[OPTIONS_TEXT];
	const char *cause;

	knob_path(place, path, sizeof(path));
	cause = why_refused(err, path, text);
	emit_place(t->out, "refused", place->name, place->index);
	emit_text(t->out, "value", value);
	emit_text(t->out, "cause", cause);
	emit_text(t->out, "reason", text);
	emit_end(t->out);
}

static void set_one(struct tuning *t, const struct knob_place *place, const char *value)
{
	char old[KNOB_VALUE_MAX], path[256];
	int err = knob_path(place, path, sizeof(path)); /* not a load's cgroup */

	if (!err)
		err = knob_read(place, old);
	if (!err) {
		err = journal_set_knob(&t->journal, JOURNAL_DIR, place, value);
		if (err && journal_take_back(&t->journal, ""))
			t->stuck++;
	}
	if (err) {
		t->refused++;
		emit_refused(t, place, value, err);
		return;
	}
	*(t->journal.tried_at < 0 ? &t->already : &t->applied) += 1;
	emit_place(t->out, "applied", place->name, place->index);
	emit_text(t->out, "old", old);
	emit_text(t->out, "value", value);
	emit_end(t->out);
}

static void set_all(struct tuning *t, const struct options *o)
{
	for (unsigned int i = 0; i < o->knobs; i++) {
		const struct knob_change *change = &o->knob[i];
		const char *at = change->indices ? change->indices : "0";
		int from, to;

		while (options_next_range(&at, &from, &to) > 0)
			for (int index = from; index <= to; index++)
				set_one(t,
					&(struct knob_place){ "", change->name, index },
					change->value);
	}
}

static void tell_restored(void *context, const struct journal_entry *entry)
{
	struct tuning *t = context;

	t->restored++;
	emit_place(t->out, "restored", entry->knob, entry->index);
	emit_text(t->out, "value", entry->old);
	emit_end(t->out);
}

static void tell_stuck(void *context, const struct journal_entry *entry, int err)
{
	struct tuning *t = context;

	emit_refused(t, &(struct knob_place){ "", entry->knob, entry->index },
		     entry->old, err);
}

/* What killed agents left comes back first, so that it is not taken for the old value. */
static enum exit_status begin(struct tuning *t, struct emit *out)
{
	char text[OPTIONS_TEXT], why[OPTIONS_TEXT];
	const char *cause;
	int err;

	*t = (struct tuning){ .out = out };
	journal_init(&t->journal);
	err = journal_replay(JOURNAL_DIR, "", tell_restored, t);
	if (err > 0)
		return emit_error(
			out, "knob",
			"an earlier run was killed, and what it had changed on this "
			"machine cannot be put back",
			"run rtscope-agent restore as root; see " JOURNAL_DIR);
	if (!err)
		err = journalfile_make_dir(JOURNAL_DIR);
	if (!err)
		return EXIT_DONE;
	cause = why_refused(err, JOURNAL_DIR, why);
	snprintf(text, sizeof(text),
		 "no journal can be kept in " JOURNAL_DIR ": %.150s", why);
	return emit_error(out, cause, text,
			  strcmp(cause, "capability") == 0
				  ? "run it as root, or where sudo asks for no password"
				  : "nothing was changed");
}

static void emit_tuned(const struct tuning *t)
{
	emit_begin(t->out, "tuned");
	emit_int(t->out, "schema", CONTRACT_SCHEMA);
	emit_int(t->out, "applied", t->applied);
	emit_int(t->out, "already", t->already);
	emit_int(t->out, "refused", t->refused);
	emit_end(t->out);
}

static enum exit_status fail_stuck(struct emit *out)
{
	return emit_error(out, "knob", "a setting could not be put back",
			  "run rtscope-agent restore as root; see " JOURNAL_DIR);
}

static enum exit_status put_back(struct tuning *t)
{
	if (journal_restore(&t->journal, "", tell_restored, t))
		return fail_stuck(t->out);
	return EXIT_DONE;
}

enum exit_status tune_apply(const struct options *o, struct emit *out)
{
	struct tuning t;
	enum exit_status status = begin(&t, out);

	if (status)
		return status;
	set_all(&t, o);
	if (applied_keep(&t.journal, JOURNAL_DIR)) {
		put_back(&t);
		return emit_error(out, "knob",
				  "what was applied could not be written down, and "
				  "was put back",
				  "is there room in " JOURNAL_DIR "?");
	}
	emit_tuned(&t);
	return t.stuck ? fail_stuck(out) : EXIT_DONE;
}

enum exit_status tune_hold(struct options *o, struct emit *out)
{
	/* the host's word is heard at once: it waits for ours */
	struct pollfd in = { .fd = o->link.watch ? STDIN_FILENO : -1,
			     .events = POLLIN };
	struct tuning t;
	enum exit_status status = begin(&t, out);

	if (status)
		return status;
	set_all(&t, o);
	emit_tuned(&t);
	while (hostlink_check(&o->link, clock_now_ns()) == HOSTLINK_UP)
		poll(&in, 1, (int)(hostlink_period_ns(&o->link) / 1000000));
	return put_back(&t);
}

enum exit_status tune_restore(const struct options *o, struct emit *out)
{
	struct tuning t = { .out = out };
	const struct applied_visitor visitor = { tell_restored, tell_stuck, &t };
	int left = journal_replay(JOURNAL_DIR, "", tell_restored, &t);

	if (left == 0 && o->applied_too)
		left = applied_restore(JOURNAL_DIR, "", &visitor);
	if (left == 0)
		return EXIT_DONE;
	return emit_error(out, "knob", "not everything could be put back",
			  geteuid() == 0 ? "see " JOURNAL_DIR
					 : "run it as root; see " JOURNAL_DIR);
}
