/* SPDX-License-Identifier: MIT */
#include "files/disk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

enum exit_status disk(char **paths, int count, struct emit *out)
{
	for (int i = 0; i < count; i++) {
		struct statfs st;
		char message[512];

		if (statfs(paths[i], &st) < 0) {
			snprintf(message, sizeof(message), "cannot look at %.300s: %s",
				 paths[i], strerror(errno));
			return emit_error(out, "missing", message,
					  "name a directory that exists");
		}
		emit_begin(out, "disk");
		emit_text(out, "path", paths[i]);
		/* the file system's magic number: linux/magic.h */
		emit_int(out, "fs_magic", (int64_t)(st.f_type & 0xffffffffL));
		emit_int(out, "free_bytes", (int64_t)st.f_bavail * st.f_bsize);
		emit_int(out, "free_inodes", (int64_t)st.f_ffree);
		emit_end(out);
	}
	return EXIT_DONE;
}
