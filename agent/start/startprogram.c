/* SPDX-License-Identifier: MIT */
#include "start/startprogram.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "files/programfile.h"
#include "start/startadvice.h"

int startprogram_explain(const char *program, int err)
{
	const struct programfile_cause cause = programfile_cause(program, err);

	startadvice_print(program, "", err, cause.why, cause.remedy);
	return err == ENOENT ? STARTPROGRAM_MISSING : STARTPROGRAM_CANNOT;
}

bool startprogram_has_rights(const char *path)
{
	struct stat file;

	return (stat(path, &file) == 0 && (file.st_mode & (S_ISUID | S_ISGID))) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}
