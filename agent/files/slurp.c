/* SPDX-License-Identifier: MIT */
#include "files/slurp.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

long slurp_fd(int fd, char *text, size_t size)
{
	size_t used = 0;

	while (used < size - 1) {
		ssize_t n = pread(fd, text + used, size - 1 - used, (off_t)used);

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		used += (size_t)n;
	}
	text[used] = '\0';
	return (long)used;
}

long slurp(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	long n;

	if (fd < 0)
		return -errno;
	n = slurp_fd(fd, text, size);
	close(fd);
	return n;
}

int slurp_int(const char *path, int64_t *out)
{
	char text[64];
	long n = slurp(path, text, sizeof(text));

	if (n < 0)
		return (int)n;
	if (!isdigit((unsigned char)text[0]) && text[0] != '-')
		return -EINVAL;
	*out = strtoll(text, NULL, 10);
	return 0;
}
