/* SPDX-License-Identifier: MIT */
#include "thread/rights.h"

#include <errno.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/slurp.h"

#define PERF_PARANOID "/proc/sys/kernel/perf_event_paranoid"
#define CAP_VERSION 0x20080522 /* _LINUX_CAPABILITY_VERSION_3: two words of each set */

struct cap_header {
	uint32_t version;
	int pid;
};

struct cap_word {
	uint32_t effective, permitted, inheritable;
};

static int get_caps(struct cap_word caps[2])
{
	struct cap_header header = { .version = CAP_VERSION };

	return syscall(SYS_capget, &header, caps) < 0 ? -errno : 0;
}

bool rights_have(enum right right)
{
	struct cap_word caps[2] = { { 0 } };

	return get_caps(caps) == 0 && (caps[right / 32].effective >> right % 32 & 1);
}

bool rights_in_user_namespace(void)
{
	unsigned int inside, outside, count;
	char map[128];

	return slurp("/proc/self/uid_map", map, sizeof(map)) > 0 &&
	       sscanf(map, "%u %u %u", &inside, &outside, &count) == 3 &&
	       count != UINT32_MAX;
}

const char *rights_remedy(const char *remedy, char text[RIGHTS_TEXT])
{
	const char *sudo = strstr(remedy, "sudo"), *rights = "root's rights)";

	if (!sudo || !rights_in_user_namespace())
		return remedy;
	if (sudo[4] && sudo[5] == '(')
		rights = sudo + 6;
	snprintf(text, RIGHTS_TEXT,
		 "leave this user namespace: only the first one gives %.*s",
		 (int)strcspn(rights, ")"), rights);
	return text;
}

static uint64_t bit(enum right right)
{
	return UINT64_C(1) << right;
}

static int drop_all_but(uint64_t keep)
{
	struct cap_header header = { .version = CAP_VERSION };
	struct cap_word caps[2] = { { 0 } };
	int err = get_caps(caps);

	if (err)
		return err;

	for (int i = 0; i < 2; i++) {
		caps[i].permitted &= (uint32_t)(keep >> 32 * i);
		caps[i].effective = caps[i].permitted;
		caps[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, caps) < 0)
		return -errno;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int rights_drop(bool keep_rawio)
{
	return drop_all_but(bit(RIGHT_SYS_NICE) | bit(RIGHT_IPC_LOCK) |
			    bit(RIGHT_KILL) | (keep_rawio ? bit(RIGHT_SYS_RAWIO) : 0));
}

/* Kernels of Debian have a level beyond 2: then CAP_PERFMON is not enough. */
static bool needs_administrator(void)
{
	int64_t level;

	return slurp_int(PERF_PARANOID, &level) == 0 && level > 2;
}

static enum right to_watch(bool probes)
{
	const bool administrator =
		probes || !rights_have(RIGHT_PERFMON) || needs_administrator();

	return administrator ? RIGHT_SYS_ADMIN : RIGHT_PERFMON;
}

int rights_drop_to_watch(bool probes)
{
	return drop_all_but(bit(RIGHT_SYS_PTRACE) | bit(RIGHT_DAC_READ_SEARCH) |
			    bit(RIGHT_IPC_LOCK) | bit(to_watch(probes)));
}

bool rights_may_watch(bool probes)
{
	return rights_have(RIGHT_SYS_PTRACE) && rights_have(to_watch(probes));
}

int rights_become(uid_t uid, gid_t gid)
{
	if (setgroups(1, &gid) < 0 || setgid(gid) < 0 || setuid(uid) < 0)
		return -errno;
	return 0;
}

/* For those of the kernel that a later one may have: PR_CAP_AMBIENT of Linux 4.3. */
#define MOST_CAPABILITIES 64

uint64_t rights_ambient(void)
{
	uint64_t found = 0;

	for (int i = 0; i < MOST_CAPABILITIES; i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0) == 1)
			found |= UINT64_C(1) << i;
	return found;
}

static int raise_ambient(uint64_t capabilities, bool keep_others)
{
	struct cap_header header = { .version = CAP_VERSION };
	struct cap_word caps[2] = { { 0 } };
	int err = get_caps(caps);

	if (err)
		return err;
	for (int i = 0; i < 2; i++) {
		const uint32_t wanted = (uint32_t)(capabilities >> 32 * i);

		if (wanted & ~caps[i].permitted)
			return -EPERM;
		caps[i].inheritable |= wanted;
		if (!keep_others)
			caps[i].permitted = wanted;
		caps[i].effective = caps[i].permitted;
	}
	if (syscall(SYS_capset, &header, caps) < 0)
		return -errno;
	for (int i = 0; i < MOST_CAPABILITIES; i++)
		if ((capabilities >> i & 1) &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0) < 0)
			return -errno;
	return 0;
}

int rights_become_with(uid_t uid, gid_t gid, const gid_t *group, int groups,
		       uint64_t capabilities)
{
	if (group) {
		if (setgroups((size_t)groups, group) < 0 || setgid(gid) < 0)
			return -errno;
		/* else the change of user takes them all away */
		if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setuid(uid) < 0)
			return -errno;
		prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	}
	return raise_ambient(capabilities, uid == 0);
}

/* The path after "N:NAME:" of the hierarchy in /proc/self/cgroup; NULL if there is none. */
static char *cgroup_of(char *text, const char *controller)
{
	char *line_end;

	for (char *line = text; line && *line; line = line_end ? line_end + 1 : NULL) {
		char *name = strchr(line, ':');
		char *path = name ? strchr(name + 1, ':') : NULL;

		line_end = strchr(line, '\n');
		if (!path || (line_end && path > line_end))
			continue;
		/* the whole word: "cpu" is not "cpuset", but is in "cpu,cpuacct" */
		if (strncmp(name + 1, controller, strlen(controller)) == 0 &&
		    strchr(",:", name[1 + strlen(controller)])) {
			if (line_end)
				*line_end = '\0';
			return path + 1;
		}
	}
	return NULL;
}

bool rights_cgroup_without_rt(char *where, size_t size)
{
	static const char *const mounts[] = { "/sys/fs/cgroup/cpu",
					      "/sys/fs/cgroup/cpu,cpuacct" };
	char text[4096], value[32], path[512];
	const char *group;

	if (slurp("/proc/self/cgroup", text, sizeof(text)) < 0)
		return false;
	group = cgroup_of(text, "cpu");
	if (!group)
		return false;

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		snprintf(path, sizeof(path), "%s%.400s/cpu.rt_runtime_us", mounts[i],
			 group);
		if (slurp(path, value, sizeof(value)) > 0 && atol(value) == 0) {
			snprintf(where, size, "%s is 0", path);
			return true;
		}
	}
	return false;
}
