/* SPDX-License-Identifier: MIT */
#include "files/programfile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool programfile_find(const char *name, char *path, size_t size)
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

struct programfile_cause programfile_cause(const char *program, int err)
{
	char path[PATH_MAX];
	struct stat file;
	bool there;

	programfile_find(program, path, sizeof(path));
	there = stat(path, &file) == 0;
	if (err == ENOENT && there)
		return (struct programfile_cause){
			"the interpreter that its first line or its ELF header names "
			"is not there",
			"head -c 80 PROGRAM; readelf -l PROGRAM | grep interpreter"
		};
	if (err == ENOENT)
		return (struct programfile_cause){
			"", "its path, after --; for a program of the PATH: command -v "
			    "PROGRAM"
		};
	if (err == EACCES && there && S_ISDIR(file.st_mode))
		return (struct programfile_cause){ "it is a directory", "" };
	if (err == EACCES)
		return (struct programfile_cause){
			"", "ls -l PROGRAM; chmod +x PROGRAM; findmnt -T PROGRAM "
			    "(noexec)"
		};
	if (err == ENOEXEC)
		return (struct programfile_cause){
			"it is of another machine, or no program",
			"file PROGRAM; uname -m"
		};
	return (struct programfile_cause){ "", "" };
}
