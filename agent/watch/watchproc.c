/* SPDX-License-Identifier: MIT */
#include "watch/watchproc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "files/slurp.h"
#include "watch/waitclock.h"

#define AUXV_BYTES 1024
#define PAGE_BYTES 4096

/* Of these a thread that does not sleep takes an event that is there. */
static bool is_of_events(const char *path)
{
	static const char *const kinds[] = { "[timerfd]", "[eventfd]", "[signalfd]" };
	char text[64];
	const ssize_t size = readlink(path, text, sizeof(text) - 1);

	text[size > 0 ? size : 0] = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strstr(text, kinds[i]))
			return true;
	return false;
}

static enum watchcalls_descriptor ask(int pid, int fd)
{
	char path[64], text[512];
	const char *line;
	unsigned int flags;
	struct stat file;
	bool events;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	if (stat(path, &file)) /* closed, or not to be seen */
		return DESCRIPTOR_GONE;
	if (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode) || S_ISBLK(file.st_mode))
		return DESCRIPTOR_OF_FILE;
	events = is_of_events(path);
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	if (slurp(path, text, sizeof(text)) <= 0)
		return events ? DESCRIPTOR_OF_EVENTS : DESCRIPTOR_GONE;
	if (events)
		return waitclock_is_settable_timer(text) ? DESCRIPTOR_SETTABLE
							 : DESCRIPTOR_OF_EVENTS;
	line = strstr(text, "flags:");
	return line && sscanf(line, "flags: %o", &flags) == 1 && flags & O_NONBLOCK
		       ? DESCRIPTOR_NEVER_WAITS
		       : DESCRIPTOR_WAITS;
}

enum watchcalls_descriptor watchproc_descriptor(void *of, int fd)
{
	struct watchproc *p = of;
	const unsigned int at = (unsigned int)fd % WATCHPROC_DESCRIPTORS;

	if (fd < 0) /* there is none */
		return DESCRIPTOR_NEVER_WAITS;
	if (p->known[at].fd != fd + 1) {
		p->known[at].fd = fd + 1;
		p->known[at].is = ask(p->pid, fd);
	}
	return p->known[at].is;
}

bool watchproc_copy(void *of, uint64_t address, void *to, size_t size)
{
	const struct watchproc *p = of;
	const struct iovec here = { to, size };
	const struct iovec there = { (void *)(uintptr_t)address, size };

	return process_vm_readv(p->pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

bool watchproc_is_int80(struct watchproc *p, uint64_t ip)
{
	static const unsigned char int80[] = { 0xcd, 0x80 };
	const unsigned int at = (unsigned int)(ip % WATCHPROC_SITES);
	unsigned char code[sizeof(int80)];

	if (p->site[at].ip != ip) {
		p->site[at].ip = ip;
		p->site[at].int80 =
			watchproc_copy(p, ip - sizeof(code), code, sizeof(code)) &&
			memcmp(code, int80, sizeof(code)) == 0;
	}
	return p->site[at].int80;
}

/* How many bytes of a file of a process there were; 0 or less: it cannot be read. */
static ssize_t read_begin(int pid, const char *file, void *to, size_t most)
{
	char path[64];
	ssize_t size = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		size = read(fd, to, most);
		close(fd);
	}
	return size;
}

enum watchcalls_abi watchproc_abi(int pid)
{
	unsigned char head[WATCHCALLS_HEAD] = { 0 };
	ssize_t size = read_begin(pid, "exe", head, sizeof(head));

	return size == sizeof(head) ? watchcalls_of_program(head) : watchcalls_own();
}

/* Where the kernel has put its code in a process; 0 if it does not tell. */
static uint64_t vdso_of(int pid, size_t word)
{
	unsigned char text[AUXV_BYTES];
	ssize_t size = read_begin(pid, "auxv", text, sizeof(text));
	uint64_t key = 0, value = 0;

	for (ssize_t at = 0; at + 2 * (ssize_t)word <= size; at += 2 * (ssize_t)word) {
		memcpy(&key, text + at, word);
		memcpy(&value, text + at + word, word);
		if (key == AT_SYSINFO_EHDR)
			return value;
	}
	return 0;
}

size_t watchproc_vdso(int pid, void *to, size_t size)
{
	const enum watchcalls_abi abi = watchproc_abi(pid);
	const bool narrow = abi == CALLS_I386 || abi == CALLS_X32 || abi == CALLS_ARM;
	const uint64_t begin = vdso_of(pid, narrow ? 4 : sizeof(void *));
	struct watchproc p = { .pid = pid };
	size_t copied = 0;

	while (begin && copied + PAGE_BYTES <= size &&
	       watchproc_copy(&p, begin + copied, (char *)to + copied, PAGE_BYTES))
		copied += PAGE_BYTES;
	return copied;
}

void watchproc_forget(struct watchproc *p)
{
	memset(p->site, 0, sizeof(p->site));
	memset(p->known, 0, sizeof(p->known));
}
