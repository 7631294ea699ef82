/* SPDX-License-Identifier: MIT */
#include "start/startlock.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files/slurp.h"
#include "host/emit.h"

#define SYSCALL_STOP  (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */
#define EVENT(status) ((unsigned int)(status) >> 16)
#define EVENT_STOP    128 /* PTRACE_EVENT_STOP, which musl and glibc name differently */
#define NOT_NATIVE    (-ENOTSUP)

/* The registers of a thread as NT_PRSTATUS has them: words of the machine. */
#define MOST_WORDS 64

struct registers {
	unsigned long word[MOST_WORDS];
	size_t bytes;
};

/*
 * Where a system call of each architecture has its parts, as words of NT_PRSTATUS
 * (arch/ARCH/include/uapi/asm/ptrace.h), and its instruction.
 */
#if defined(__x86_64__)
enum {
	WORDS = 27,
	PC = 16,
	NUMBER = 10,
	FIRST = 14,
	RESULT = 10,
	ORIGINAL = 15,
	CS = 17
};
static const unsigned char INSTRUCTION[] = { 0x0f, 0x05 };
#elif defined(__aarch64__)
enum { WORDS = 34, PC = 32, NUMBER = 8, FIRST = 0, RESULT = 0 };
static const unsigned char INSTRUCTION[] = { 0x01, 0x00, 0x00, 0xd4 };
#elif defined(__riscv)
enum { WORDS = 32, PC = 0, NUMBER = 17, FIRST = 10, RESULT = 10 };
static const unsigned char INSTRUCTION[] = { 0x73, 0x00, 0x00, 0x00 };
#elif defined(__arm__)
enum { WORDS = 18, PC = 15, NUMBER = 7, FIRST = 0, RESULT = 0, STATUS = 16 };
static const unsigned char INSTRUCTION[] = { 0x00, 0x00, 0x00, 0xef };
static const unsigned char THUMB[] = { 0x00, 0xdf };
#else
#error "no registers are named for this architecture"
#endif

static int get_registers(pid_t pid, struct registers *r)
{
	struct iovec io = { .iov_base = r->word, .iov_len = sizeof(r->word) };

	if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &io) < 0)
		return -errno;
	r->bytes = io.iov_len;
	return r->bytes == WORDS * sizeof(long) ? 0 : NOT_NATIVE;
}

static int set_registers(pid_t pid, const struct registers *r)
{
	struct iovec io = { .iov_base = (void *)r->word, .iov_len = r->bytes };

	return ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &io) < 0 ? -errno : 0;
}

/* The system call instruction for the mode in which the program begins. */
static const unsigned char *instruction_for(const struct registers *r, size_t *size)
{
#if defined(__arm__)
	if (r->word[STATUS] & 0x20) { /* PSR_T_BIT */
		*size = sizeof(THUMB);
		return THUMB;
	}
#endif
	(void)r;
	*size = sizeof(INSTRUCTION);
	return INSTRUCTION;
}

/* Waits for the next stop of the program that is no signal, and passes those on. */
static int next_stop(pid_t pid, int how)
{
	long signo = 0;
	int status;

	for (;;) {
		if (ptrace(how, pid, NULL, (void *)signo) < 0 ||
		    waitpid(pid, &status, __WALL) < 0)
			return -errno;
		if (!WIFSTOPPED(status))
			return -ESRCH;
		if (WSTOPSIG(status) == SYSCALL_STOP ||
		    (EVENT(status) && EVENT(status) != EVENT_STOP))
			return 0;
		signo = EVENT(status) == EVENT_STOP ? 0 : WSTOPSIG(status);
	}
}

/* Prepares a call at the program's first instruction; its words there are in text. */
static int begin_call(pid_t pid, const struct registers *at, long number,
		      unsigned long argument, unsigned long *text)
{
	struct registers call = *at;
	unsigned long poked;
	size_t size;
	const unsigned char *instruction = instruction_for(at, &size);
	int err;

	errno = 0;
	*text = (unsigned long)ptrace(PTRACE_PEEKTEXT, pid, (void *)at->word[PC], NULL);
	if (errno)
		return -errno;
	poked = *text;
	memcpy(&poked, instruction, size);
	if (ptrace(PTRACE_POKETEXT, pid, (void *)at->word[PC], (void *)poked) < 0)
		return -errno;
	call.word[NUMBER] = (unsigned long)number;
	call.word[FIRST] = argument;
#if defined(__x86_64__)
	call.word[ORIGINAL] = ~0ul; /* no call is to be restarted */
#endif
	err = set_registers(pid, &call);
	if (err)
		ptrace(PTRACE_POKETEXT, pid, (void *)at->word[PC], (void *)*text);
	return err;
}

/* What mlockall() gives in the program; its registers and text are as before after. */
static int lock_in(pid_t pid, const struct registers *at, const char **what)
{
	struct registers after = { 0 };
	unsigned long text;
	int err = begin_call(pid, at, SYS_mlockall, MCL_CURRENT | MCL_FUTURE, &text);

	*what = "a system call in the program";
	if (!err)
		err = next_stop(pid, PTRACE_SYSCALL); /* its entry */
	if (!err)
		err = next_stop(pid, PTRACE_SYSCALL); /* its end */
	if (!err)
		err = get_registers(pid, &after);
	if (err)
		return err;
	if (ptrace(PTRACE_POKETEXT, pid, (void *)at->word[PC], (void *)text) < 0)
		return -errno;
	err = set_registers(pid, at);
	*what = "mlockall() in the program";
	return err ? err : (int)(long)after.word[RESULT];
}

static int64_t locked_kb_of(pid_t pid)
{
	char path[64], text[4096];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (slurp(path, text, sizeof(text)) < 0)
		return 0;
	line = strstr(text, "\nVmLck:");
	return line ? atoll(line + strlen("\nVmLck:")) : 0;
}

/* The program, stopped at its first instruction, ends itself: its parent sees a status
 * that means something. */
static void end_program(pid_t pid, const struct registers *at)
{
	unsigned long text;

	if (!at->bytes || begin_call(pid, at, SYS_exit_group, EXIT_INVALID, &text) ||
	    ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0)
		kill(pid, SIGKILL);
}

/* From the stop in which the process has become the program. */
static void lock_program(pid_t pid, startlock_done *done, void *arg)
{
	struct registers at = { 0 };
	struct startlock lock = { 0 };
	/* the end of execve(), right before the first instruction */
	int err = next_stop(pid, PTRACE_SYSCALL);

	lock.failed = "the program's registers";
	if (!err)
		err = get_registers(pid, &at);
	if (err == NOT_NATIVE)
		at.bytes = 0;
	if (!err)
		err = lock_in(pid, &at, &lock.failed);
	lock.locked_kb = err ? 0 : locked_kb_of(pid);
	if (!err && !lock.locked_kb) {
		lock.failed = "VmLck of the program";
		err = -ENODATA;
	}
	lock.err = -err;
	if (!err)
		lock.failed = NULL;
	done(&lock, arg);
	if (err)
		end_program(pid, &at);
	else
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

/* Goes with the process until its exec, or its end. */
static bool follow_to_exec(pid_t pid)
{
	long how = PTRACE_CONT, signo = 0;
	int status;

	for (;;) {
		if (waitpid(pid, &status, __WALL) < 0 || !WIFSTOPPED(status))
			return false;
		if (EVENT(status) == PTRACE_EVENT_EXEC)
			return true;
		/* a stop by SIGSTOP stays one */
		how = EVENT(status) == EVENT_STOP ? PTRACE_LISTEN : PTRACE_CONT;
		signo = EVENT(status) ? 0 : WSTOPSIG(status);
		if (ptrace((int)how, pid, NULL, (void *)signo) < 0)
			return false;
	}
}

/* Reports 0 or errno of the attachment, then works. Does not return. */
static void trace(pid_t pid, int report, startlock_done *done, void *arg)
{
	const long wanted =
		PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
	int err = ptrace(PTRACE_SEIZE, pid, NULL, (void *)wanted) < 0 ? errno : 0;

	/* standard error stays, for the user */
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	if (write(report, &err, sizeof(err)) != sizeof(err) || err)
		_exit(1);
	close(report);
	if (follow_to_exec(pid))
		lock_program(pid, done, arg);
	_exit(0);
}

/* The tracer is a grandchild: the program must not find a child that it did not make. */
int startlock_begin(startlock_done *done, void *arg)
{
	pid_t self = getpid(), child, tracer = 0;
	int go[2], told[2], err = 0;
	char word = 0;

	if (pipe(go) < 0 || pipe(told) < 0)
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		tracer = fork();
		if (tracer == 0) {
			close(go[1]);
			close(told[0]);
			if (read(go[0], &word, 1) == 1) {
				close(go[0]);
				trace(self, told[1], done, arg);
			}
			_exit(1);
		}
		_exit(write(told[1], &tracer, sizeof(tracer)) != sizeof(tracer));
	}
	waitpid(child, NULL, 0);
	close(told[1]);
	close(go[0]);
	if (read(told[0], &tracer, sizeof(tracer)) != sizeof(tracer) || tracer < 0)
		err = EAGAIN;
#ifdef PR_SET_PTRACER
	/* Yama lets only an ancestor trace, unless it is named */
	prctl(PR_SET_PTRACER, (unsigned long)tracer, 0, 0, 0);
#endif
	if (!err && (write(go[1], &word, 1) != 1 ||
		     read(told[0], &err, sizeof(err)) != sizeof(err)))
		err = EPIPE;
	close(go[1]);
	close(told[0]);
	return -err;
}
