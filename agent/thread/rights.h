/* SPDX-License-Identifier: MIT */
/*
 * rights - what this process may do, and giving up what it does not need.
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The kernel's capability numbers. */
enum right {
	RIGHT_DAC_READ_SEARCH = 2,
	RIGHT_KILL = 5,
	RIGHT_IPC_LOCK = 14,
	RIGHT_SYS_RAWIO = 17,
	RIGHT_SYS_PTRACE = 19,
	RIGHT_SYS_ADMIN = 21,
	RIGHT_SYS_NICE = 23,
	RIGHT_PERFMON = 38, /* since Linux 5.8; SYS_ADMIN before */
};

/* Whether the capability is in the effective set of the calling thread. */
bool rights_have(enum right right);

/* Whether users are mapped: capabilities then count for what the namespace owns. */
bool rights_in_user_namespace(void);

#define RIGHTS_TEXT 256

/* What to do, in words. In a user namespace sudo does not help: text then has what does,
 * with the capabilities that the remedy names as "sudo (CAP_...)". */
const char *rights_remedy(const char *remedy, char text[RIGHTS_TEXT]);

/*
 * Keeps SYS_NICE, IPC_LOCK, KILL and, if asked, SYS_RAWIO (the SMI counter) of what
 * there is, drops the rest for good, and forbids gaining more. Returns 0 or -errno.
 * Files of root stay writable where root owns them: the journal needs no capability.
 */
int rights_drop(bool keep_rawio);

/* The same, keeping what watching a process needs: SYS_PTRACE, DAC_READ_SEARCH (its
 * descriptors and files are in folders of its user alone), IPC_LOCK, and PERFMON or, for
 * probes (seen on 6.18) and on kernels without that, SYS_ADMIN. */
int rights_drop_to_watch(bool probes);

/* Whether those are there that let one process watch another. */
bool rights_may_watch(bool probes);

/* Whether the process is in a cgroup that may not run real-time threads; where says
 * which file or hierarchy shows it. */
bool rights_cgroup_without_rt(char *where, size_t size);

/* Becomes the user for good, with no supplementary groups but gid. 0 or -errno. */
int rights_become(uid_t uid, gid_t gid);

/*
 * Becomes the user with these groups (NULL: they stay), and keeps the capabilities, a
 * bit for each: also a program that it executes has them (ambient). Those that are kept
 * are all that it has, unless it stays root. 0 or -errno.
 */
int rights_become_with(uid_t uid, gid_t gid, const gid_t *group, int groups,
		       uint64_t capabilities);

/* The ambient capabilities of the calling thread; 0 where the kernel has none. */
uint64_t rights_ambient(void);

#endif
