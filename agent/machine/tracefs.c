/* SPDX-License-Identifier: MIT */
#include "machine/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "files/slurp.h"
#include "files/writefile.h"

#define MOUNT_POINT  "/sys/kernel/tracing" /* since Linux 4.1 */
#define LOCKDOWN     "/sys/kernel/security/lockdown"
#define REMOVE_TRIES 40

static int look(const char *path)
{
	char instances[TRACEFS_PATH + 16];

	snprintf(instances, sizeof(instances), "%s/instances", path);
	return access(instances, F_OK) < 0 ? -errno : 0;
}

static bool is_locked_down(const char *root)
{
	char path[128], text[128];

	snprintf(path, sizeof(path), "%s" LOCKDOWN, root);
	return slurp(path, text, sizeof(text)) > 0 && strstr(text, "[confidentiality]");
}

/* A namespace before the mount, and one that gives nothing back: what this process
 * mounts is to be seen by nobody else, and gone when it is. */
static int mount_privately(const char *path)
{
	if (unshare(CLONE_NEWNS) < 0)
		return -errno;
	if (mount(NULL, "/sys", NULL, MS_SLAVE | MS_REC, NULL) < 0)
		return -errno;
	if (mount("nodev", path, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return -errno;
	return 0;
}

int tracefs_find(const char *root, char path[TRACEFS_PATH])
{
	struct stat st;
	int err;

	snprintf(path, TRACEFS_PATH, "%s" MOUNT_POINT, root);
	err = look(path);
	if (err != -ENOENT)
		return err;
	if (stat(path, &st) < 0)
		return -ENODEV;
	if (is_locked_down(root))
		return -EKEYREJECTED;
	if (*root)
		return -ENOENT;
	err = mount_privately(path);
	if (err)
		return err;
	/* locked down it can be mounted, and is empty */
	err = look(path);
	return err == -ENOENT ? -EKEYREJECTED : err;
}

void tracefs_explain(const char *root, int err, struct tracefs_refusal *out)
{
	char path[TRACEFS_PATH];

	snprintf(path, sizeof(path), "%s" MOUNT_POINT, root);
	if (err == -EKEYREJECTED || (err == -EPERM && is_locked_down(root))) {
		out->cause = "lockdown";
		out->remedy = "boot with lockdown=integrity or none to trace";
		snprintf(out->what, sizeof(out->what),
			 "the kernel is locked down (confidentiality): it gives out no "
			 "trace");
	} else if (err == -ENODEV) {
		out->cause = "unbuilt";
		out->remedy = "use a kernel with CONFIG_FTRACE and CONFIG_TRACEFS_FS";
		snprintf(out->what, sizeof(out->what),
			 "the kernel was built without tracing: no " MOUNT_POINT);
	} else if (err == -EPERM && geteuid() == 0 && look(path) == -ENOENT) {
		out->cause = "capability";
		out->remedy =
			"run through sudo (CAP_SYS_ADMIN), or mount tracefs before: "
			"mount -t tracefs nodev " MOUNT_POINT;
		snprintf(out->what, sizeof(out->what),
			 "tracefs is not mounted, and mounting it needs CAP_SYS_ADMIN");
	} else if (err == -EACCES || (err == -EPERM && geteuid() != 0)) {
		out->cause = "permission";
		out->remedy = "run as root or with sudo";
		snprintf(out->what, sizeof(out->what), "tracing is for root alone");
	} else if (err == -EROFS) {
		out->cause = "read-only";
		out->remedy = "trace outside of the container, or mount it read-write";
		snprintf(out->what, sizeof(out->what),
			 MOUNT_POINT " or /run is mounted read-only here");
	} else {
		out->cause = "other";
		out->remedy = "look into the kernel log, and at " MOUNT_POINT;
		snprintf(out->what, sizeof(out->what), "tracefs cannot be used: %s",
			 strerror(-err));
	}
}

int tracefs_instance(const char *root, int owner, char path[TRACEFS_PATH])
{
	char tracefs[TRACEFS_PATH];
	int err = tracefs_find(root, tracefs);

	if (!err && snprintf(path, TRACEFS_PATH, "%s/instances/rtscope.%d", tracefs,
			     owner) >= TRACEFS_PATH)
		return -ENAMETOOLONG;
	return err;
}

int tracefs_instance_exists(const char *root, int owner)
{
	char path[TRACEFS_PATH];
	int err = tracefs_instance(root, owner, path);

	if (err == -ENODEV)
		return 0;
	if (err)
		return err;
	if (access(path, F_OK) == 0)
		return 1;
	return errno == ENOENT ? 0 : -errno;
}

int tracefs_instance_make(const char *root, int owner)
{
	char path[TRACEFS_PATH];
	int err = tracefs_instance(root, owner, path);

	if (err)
		return err;
	return mkdir(path, 0700) < 0 ? -errno : 0;
}

int tracefs_instance_remove(const char *root, int owner)
{
	const struct timespec pause = { .tv_nsec = 25000000 };
	char path[TRACEFS_PATH];
	int err = tracefs_instance(root, owner, path);

	if (err)
		return err;
	tracefs_write(path, "tracing_on", "0");
	/* it is busy for as long as somebody reads it */
	for (int tries = 0; tries < REMOVE_TRIES; tries++) {
		if (rmdir(path) == 0 || errno == ENOENT)
			return 0;
		err = -errno;
		nanosleep(&pause, NULL);
	}
	return err;
}

int tracefs_write(const char *directory, const char *name, const char *value)
{
	char path[2 * TRACEFS_PATH];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return writefile(path, value);
}
