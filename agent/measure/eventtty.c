/* SPDX-License-Identifier: MIT */
/* Events through a terminal. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "files/slurp.h"
#include "journal/journal.h"
#include "journal/serialline.h"
#include "measure/eventkind.h"
#include "thread/rawcall.h"

/* --- pty: into the master, out of the terminal ------------------------------------ */

static int make_raw(int fd)
{
	struct termios t;

	if (tcgetattr(fd, &t) < 0)
		return -errno;
	cfmakeraw(&t);
	t.c_cc[VMIN] = sizeof(uint32_t); /* a number at a time */
	t.c_cc[VTIME] = 0;
	return tcsetattr(fd, TCSANOW, &t) < 0 ? -errno : 0;
}

static int open_pty(struct event_ends *e, const struct event_choice *choice,
		    struct event_refusal *refusal)
{
	char name[64];
	int err = 0;

	(void)choice;
	e->send_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (e->send_fd < 0 || unlockpt(e->send_fd) < 0 ||
	    ptsname_r(e->send_fd, name, sizeof(name)))
		err = -errno;
	if (!err) {
		e->receive_fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
		err = e->receive_fd < 0 ? -errno : make_raw(e->receive_fd);
	}
	if (!err && fcntl(e->send_fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		err = -errno;
	if (err)
		event_refuse(refusal, "make a pseudo terminal", err);
	if (err == -ENOENT || err == -ENODEV || err == -ENOTTY)
		refusal->remedy = "mount devpts at /dev/pts, or choose another --event";
	return err;
}

/* A terminal whose buffer is full takes nothing, and says so by a count of 0. */
static int send_pty(struct event_ends *e, uint32_t number)
{
	long done = rawcall4(SYS_write, e->send_fd, (long)&number,
			     (const void *)sizeof(number), NULL);

	if (done == 0)
		return -EAGAIN;
	return done == sizeof(number) ? 0 : done < 0 ? (int)done : -EIO;
}

const struct event_kind event_kind_pty = { "pty",    open_pty,
					   send_pty, event_receive_number,
					   NULL,     false };

/* --- serial: a byte through a UART's shift register ------------------------------- */

#define CONSOLES "/sys/class/tty/console/active"
#define LINE     "ttyS"

/* The number of a serial line that nobody else is to use, or -errno. */
static int line_of(const char *name)
{
	char consoles[128], *rest = NULL;
	int number, used = 0;

	if (sscanf(name, LINE "%4d%n", &number, &used) != 1 || name[used])
		return -ENODEV;
	if (slurp(CONSOLES, consoles, sizeof(consoles)) < 0)
		return number;
	for (char *w = strtok_r(consoles, " \n", &rest); w;
	     w = strtok_r(NULL, " \n", &rest))
		if (strcmp(w, name) == 0)
			return -EBUSY;
	return number;
}

static int set_line(struct event_ends *e, int number, bool loop)
{
	const struct knob_place place = { "", "serial_line", number };
	char present[KNOB_VALUE_MAX], raw[KNOB_VALUE_MAX];
	int err = knob_read(&place, present);

	if (!err)
		err = serialline_raw(present, loop, raw, sizeof(raw));
	return err ? err : journal_set_knob(e->journal, JOURNAL_DIR, &place, raw);
}

/* O_NONBLOCK of the stimulus alone: a full buffer must not hold it. */
static int open_end(int number, int flags)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/" LINE "%d", number);
	fd = open(path, flags | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	tcflush(fd, TCIOFLUSH);
	return fd;
}

static int open_lines(struct event_ends *e, const struct event_choice *choice)
{
	int from = line_of(choice->from), to = line_of(choice->to), err;

	if (from < 0 || to < 0)
		return from < 0 ? from : to;
	err = set_line(e, from, from == to);
	if (!err && from != to)
		err = set_line(e, to, false);
	if (err)
		return err;
	e->receive_fd = open_end(to, O_RDWR);
	if (e->receive_fd < 0)
		return e->receive_fd;
	e->send_fd = open_end(from, O_RDWR | O_NONBLOCK);
	return e->send_fd < 0 ? e->send_fd : 0;
}

static int open_serial(struct event_ends *e, const struct event_choice *choice,
		       struct event_refusal *refusal)
{
	static bool opened;
	char what[EVENT_WHAT];
	int err = opened ? -EBUSY : open_lines(e, choice);

	if (!err) {
		opened = true;
		err = event_try_first(e, &event_kind_serial, "byte", refusal);
		e->received = 0;
		return err;
	}
	snprintf(what, sizeof(what), "use the serial lines %s and %s",
		 *choice->from ? choice->from : "(none)",
		 *choice->to ? choice->to : "(none)");
	event_refuse(refusal, opened ? "use a serial line for a second CPU" : what,
		     err);
	if (opened)
		refusal->remedy = "name one CPU with --cpus";
	else if (err == -EBUSY)
		refusal->remedy = "name a line that is no console of the kernel";
	else if (err == -ENODEV || err == -ENOENT)
		refusal->remedy =
			"write serial:from=ttyS1:to=ttyS2, or the same twice: "
			"that UART then returns what it sends";
	return err;
}

static int send_serial(struct event_ends *e, uint32_t number)
{
	const uint8_t byte = (uint8_t)number;
	long done = rawcall4(SYS_write, e->send_fd, (long)&byte,
			     (const void *)sizeof(byte), NULL);

	return done < 0 ? (int)done : done == sizeof(byte) ? 0 : -EAGAIN;
}

/* A byte has the lowest part of a number: EVENT_SERIAL may be lost at once. */
static int64_t receive_serial(struct event_ends *e)
{
	uint8_t byte;
	long done = rawcall4(SYS_read, e->receive_fd, (long)&byte,
			     (const void *)sizeof(byte), NULL);

	if (done != sizeof(byte))
		return done < 0 ? done : -EPIPE;
	e->received += (uint32_t)(int8_t)(byte - (uint8_t)e->received) + 1;
	return (int64_t)(e->received - 1);
}

const struct event_kind event_kind_serial = { "serial",       open_serial, send_serial,
					      receive_serial, NULL,        true };
