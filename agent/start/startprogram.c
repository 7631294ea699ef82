/* SPDX-License-Identifier: MIT */
#include "start/startprogram.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "start/startadvice.h"

bool startprogram_find(const char *name, char *path, size_t size)
{
	const char *from = getenv("PATH"), *end;
	int err = ENOENT;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return access(path, X_OK) == 0;
	}
	for (from = from ? from : "/usr/local/bin:/bin:/usr/bin"; from; from = end) {
		end = strchr(from, ':');
		snprintf(path, size, "%.*s%s%s",
			 (int)(end ? end - from : (long)strlen(from)), from,
			 *from && *from != ':' ? "/" : "", name);
		if (access(path, X_OK) == 0)
			return true;
		if (errno == EACCES)
			err = EACCES;
		end = end ? end + 1 : NULL;
	}
	errno = err;
	return false;
}

int startprogram_explain(const char *program, int err)
{
	struct stat file;
	const bool there = strchr(program, '/') && stat(program, &file) == 0;
	const char *why = "", *remedy = "";

	if (err == ENOENT && there) {
		why = "the interpreter that its first line or its ELF header names is "
		      "not there";
		remedy = "head -c 80 PROGRAM; readelf -l PROGRAM | grep interpreter";
	} else if (err == ENOENT) {
		remedy = "its path, after --; for a program of the PATH: command -v "
			 "PROGRAM";
	} else if (err == EACCES && there && S_ISDIR(file.st_mode)) {
		why = "it is a directory";
	} else if (err == EACCES) {
		remedy = "ls -l PROGRAM; chmod +x PROGRAM; findmnt -T PROGRAM (noexec)";
	} else if (err == ENOEXEC) {
		why = "it is of another machine, or no program";
		remedy = "file PROGRAM; uname -m";
	}
	startadvice_print(program, "", err, why, remedy);
	return err == ENOENT ? STARTPROGRAM_MISSING : STARTPROGRAM_CANNOT;
}

bool startprogram_has_rights(const char *path)
{
	struct stat file;

	return (stat(path, &file) == 0 && (file.st_mode & (S_ISUID | S_ISGID))) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}
