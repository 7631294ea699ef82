/* SPDX-License-Identifier: MIT */
#include "files/writefile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int writefile(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	if (n < 0)
		n = -errno;
	close(fd);
	return n < 0 ? (int)n : 0;
}
