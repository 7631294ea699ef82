/* SPDX-License-Identifier: MIT */
#include "files/readfile.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES   (4 * 1024 * 1024)
#define CHUNK_BYTES 65536 /* sysctl files answer ENOMEM to a larger read */

/* Only regular files: a FIFO or device would make us wait, or do something. */
static int open_regular(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

static long read_all(const char *path, unsigned char *bytes)
{
	int fd = open_regular(path);
	long used = 0;
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	while (n > 0 && used < MAX_BYTES) {
		long room = MAX_BYTES - used;

		n = read(fd, bytes + used,
			 (size_t)(room < CHUNK_BYTES ? room : CHUNK_BYTES));
		if (n > 0)
			used += n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	if (n < 0)
		used = -errno;
	else if (used == MAX_BYTES)
		used = -EFBIG; /* half a file would be a wrong fact */
	close(fd);
	return used;
}

static void emit_file(struct emit *out, const char *path, unsigned char *bytes)
{
	long size = read_all(path, bytes);

	emit_begin(out, "file");
	emit_text(out, "path", path);
	if (size >= 0) {
		emit_text(out, "status", "ok");
		emit_base64(out, "base64", bytes, (size_t)size);
	} else if (size == -ENOENT || size == -ENOTDIR) {
		emit_text(out, "status", "missing");
	} else {
		emit_text(out, "status", "denied");
		emit_text(out, "reason", strerror((int)-size));
	}
	emit_end(out);
}

enum exit_status readfile(char **paths, int count, struct emit *out)
{
	unsigned char *bytes = malloc(MAX_BYTES);

	if (!bytes)
		return EXIT_INVALID;
	for (int i = 0; i < count; i++) {
		glob_t found;

		if (glob(paths[i], GLOB_NOCHECK, NULL, &found) != 0)
			continue;
		for (size_t j = 0; j < found.gl_pathc; j++)
			emit_file(out, found.gl_pathv[j], bytes);
		globfree(&found);
	}
	free(bytes);
	return out->error ? EXIT_INVALID : EXIT_DONE;
}
