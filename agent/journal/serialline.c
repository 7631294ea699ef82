/* SPDX-License-Identifier: MIT */
#include "journal/serialline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define LOOP 0x8000 /* TIOCM_LOOP of the kernel, which no library's header has */

struct line {
	struct termios t;
	int loop;
};

/* Does not wait for a carrier, which the line may be set to do. */
static int open_line(int number)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/ttyS%d", number);
	fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int write_text(const struct line *line, char *text, size_t size)
{
	const struct termios *t = &line->t;
	size_t used =
		(size_t)snprintf(text, size, "%x.%x.%x.%x.%x.%x.%x.%x.", t->c_iflag,
				 t->c_oflag, t->c_cflag, t->c_lflag, t->c_line,
				 cfgetispeed(t), cfgetospeed(t), line->loop ? 1U : 0U);

	for (unsigned int i = 0; i < NCCS && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%02x", t->c_cc[i]);
	return used < size ? 0 : -EOVERFLOW;
}

static int read_text(const char *text, struct line *line)
{
	unsigned int line_of, in, out, cc, loop;
	struct termios *t = &line->t;
	int at = 0;

	memset(line, 0, sizeof(*line));
	if (sscanf(text, "%x.%x.%x.%x.%x.%x.%x.%x.%n", &t->c_iflag, &t->c_oflag,
		   &t->c_cflag, &t->c_lflag, &line_of, &in, &out, &loop, &at) != 8 ||
	    !at)
		return -EINVAL;
	t->c_line = (cc_t)line_of;
	line->loop = (int)loop;
	for (unsigned int i = 0; i < NCCS; i++, at += 2) {
		if (sscanf(text + at, "%2x", &cc) != 1)
			return -EINVAL;
		t->c_cc[i] = (cc_t)cc;
	}
	return cfsetispeed(t, in) || cfsetospeed(t, out) ? -EINVAL : 0;
}

int serialline_read(int number, char *text, size_t size)
{
	struct line line = { 0 }; /* the kernel fills fewer of its characters */
	int fd = open_line(number), modem = 0, err = 0;

	if (fd < 0)
		return fd;
	if (tcgetattr(fd, &line.t) < 0 || ioctl(fd, TIOCMGET, &modem) < 0)
		err = -errno;
	line.loop = modem & LOOP;
	close(fd);
	return err ? err : write_text(&line, text, size);
}

int serialline_write(int number, const char *text)
{
	struct line line;
	int err = read_text(text, &line), fd, bit = LOOP;

	if (err)
		return err;
	fd = open_line(number);
	if (fd < 0)
		return fd;
	if (ioctl(fd, line.loop ? TIOCMBIS : TIOCMBIC, &bit) < 0 ||
	    tcsetattr(fd, TCSANOW, &line.t) < 0)
		err = -errno;
	close(fd);
	return err;
}

int serialline_raw(const char *present, bool loop, char *text, size_t size)
{
	struct line line;
	int err = read_text(present, &line);

	if (err)
		return err;
	cfmakeraw(&line.t);
	cfsetispeed(&line.t, B115200);
	cfsetospeed(&line.t, B115200);
	line.t.c_cflag |= CLOCAL | CREAD;
	line.t.c_cflag &= ~(tcflag_t)(CRTSCTS | CSTOPB);
	line.t.c_cc[VMIN] = 1;
	line.t.c_cc[VTIME] = 0;
	line.loop = loop;
	return write_text(&line, text, size);
}
