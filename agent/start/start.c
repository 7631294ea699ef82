/* SPDX-License-Identifier: MIT */
#include "start/start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/programfile.h"
#include "host/emit.h"
#include "journal/shieldgroup.h"
#include "start/startadvice.h"
#include "start/startlock.h"
#include "start/startprogram.h"
#include "thread/rights.h"

#define IO_SHIFT 13 /* IOPRIO_CLASS_SHIFT; the who of ioprio_set(2) is a process */
#define IO_WHO   1
#define MARK     "RTSCOPE_START" /* of the environment: rtscope app unit reads it */

/* What is asked for, and what the kernel says that there is. */
struct starting {
	const struct options *o;
	const char *program;
	struct policy want, got;
	struct cpulist cpus;
	int io;
	struct rlimit rtprio, memlock, nice;
	uint64_t capabilities, ambient; /* bits: to be passed on, read back */
	int given;                      /* descriptor; -1: nobody asked */
	bool made_given;                /* its file was not there before */
	int pid;
	bool may_lock; /* without a limit */
};

static const char *const io_classes[] = { "none", "realtime", "best-effort", "idle" };

static int refuse(const struct starting *s, const char *what, int err, const char *why,
		  const char *remedy)
{
	startadvice_print(s->program, what, err, why, remedy);
	return EXIT_INVALID;
}

/* --- limits ---------------------------------------------------------------------- */

/* Raises the soft limit, and the hard one if it may. 0 or -errno. */
static int raise_limit(int resource, rlim_t to)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return -errno;
	if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < to)
		limit.rlim_cur = to;
	if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < limit.rlim_cur)
		limit.rlim_max = limit.rlim_cur;
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

/* A capability for an ordinary user, where no limit does, if there is one to pass on. */
static void pass_on(struct starting *s, enum right right)
{
	if ((s->o->user_given ? s->o->uid : getuid()) != 0 && rights_have(right))
		s->capabilities |= UINT64_C(1) << right;
}

/*
 * What the program may ask for again, itself or in its threads, after it has become an
 * ordinary user. Where neither a limit nor a capability can be had, the kernel refuses
 * the policy or the lock below, in its own words.
 */
static void raise_limits(struct starting *s)
{
	s->capabilities = s->o->capabilities;
	if (s->want.kind == POLICY_DEADLINE ||
	    (policy_has_priority(s->want.kind) &&
	     raise_limit(RLIMIT_RTPRIO, s->want.priority)) ||
	    (s->want.nice < 0 && raise_limit(RLIMIT_NICE, (rlim_t)(20 - s->want.nice))))
		pass_on(s, RIGHT_SYS_NICE);
	if (s->o->lock_memory && raise_limit(RLIMIT_MEMLOCK, RLIM_INFINITY)) {
		struct rlimit limit;

		getrlimit(RLIMIT_MEMLOCK, &limit);
		raise_limit(RLIMIT_MEMLOCK, limit.rlim_max);
		pass_on(s, RIGHT_IPC_LOCK);
	}
}

/* --- what is set ----------------------------------------------------------------- */

static int take_shield(struct starting *s)
{
	int err = s->o->shield ? shieldgroup_enter("") : 0;

	if (!err)
		return EXIT_DONE;
	return refuse(s, "the shield", -err,
		      err == -ENOENT   ? "there is none"
		      : err == -EACCES ? "only root brings a process into it"
				       : "",
		      "sudo rtscope app start --user $USER --shield --cpus LIST ...");
}

static int take_cpus(struct starting *s)
{
	char text[CPULIST_TEXT_MAX], what[128];
	struct refusal refusal;
	int err;

	if (!s->o->cpus_given)
		return EXIT_DONE;
	cpulist_format(&s->o->cpus, text, sizeof(text));
	snprintf(what, sizeof(what), "CPUs %.100s", text);
	err = cpulist_set_affinity(&s->o->cpus);
	if (!err && cpulist_get_affinity(&s->cpus) == 0 &&
	    cpulist_equal(&s->cpus, &s->o->cpus))
		return EXIT_DONE;
	if (err == -EBUSY)
		return refuse(s, what, EBUSY, "this process has SCHED_DEADLINE",
			      "leave --cpus out");
	startadvice_cpus(&s->o->cpus, err ? &(struct cpulist){ 0 } : &s->cpus,
			 &refusal);
	return refuse(s, what, 0, refusal.why, refusal.remedy);
}

static int take_io(struct starting *s)
{
	const struct options *o = s->o;
	char what[64];

	if (!o->io_class)
		return EXIT_DONE;
	snprintf(what, sizeof(what), "I/O class %s", io_classes[o->io_class]);
	if (syscall(SYS_ioprio_set, IO_WHO, 0, o->io_class << IO_SHIFT | o->io_level) <
	    0)
		return refuse(s, what, errno,
			      errno == EPERM ? "the process lacks CAP_SYS_NICE" : "",
			      "sudo rtscope app start --user $USER ...; or leave --io "
			      "out");
	if (syscall(SYS_ioprio_get, IO_WHO, 0) !=
	    (o->io_class << IO_SHIFT | o->io_level))
		return refuse(s, what, 0, "the kernel took it and has another", "");
	return EXIT_DONE;
}

static void name_policy(const struct policy *p, char *text, size_t size)
{
	if (policy_has_priority(p->kind))
		snprintf(text, size, "SCHED_%s %u",
			 p->kind == POLICY_RR ? "RR" : "FIFO", p->priority);
	else if (p->kind == POLICY_DEADLINE)
		snprintf(text, size, "SCHED_DEADLINE");
	else
		snprintf(text, size, "policy %s, nice %d", policy_name(p->kind),
			 p->nice);
}

static bool is_as_wanted(const struct policy *got, const struct policy *want)
{
	return got->kind == want->kind && got->priority == want->priority &&
	       got->reset_on_fork == want->reset_on_fork &&
	       (policy_has_priority(want->kind) || want->kind == POLICY_IDLE ||
		want->kind == POLICY_DEADLINE || got->nice == want->nice) &&
	       (want->kind != POLICY_DEADLINE ||
		(got->runtime_ns == want->runtime_ns &&
		 got->deadline_ns == want->deadline_ns &&
		 got->period_ns == want->period_ns));
}

static int take_policy(struct starting *s)
{
	struct refusal refusal;
	char what[96];
	int err;

	name_policy(&s->want, what, sizeof(what));
	if (!s->o->policy_given && !s->o->nice_given && !s->o->reset_on_fork)
		return EXIT_DONE;
	err = policy_set(&s->want);
	if (!err)
		return EXIT_DONE;
	startadvice_policy(&s->want, -err, &refusal);
	return refuse(s, what, -err, refusal.why, refusal.remedy);
}

static int take_user(struct starting *s)
{
	const struct options *o = s->o;
	const uid_t uid = o->user_given ? o->uid : getuid();
	const gid_t gid = o->user_given ? o->gid : getgid();
	int err;

	if (!o->user_given && !s->capabilities)
		return EXIT_DONE;
	err = rights_become_with(uid, gid, o->user_given ? o->group : NULL, o->groups,
				 s->capabilities);
	if (!err)
		return EXIT_DONE;
	return refuse(s, o->user_given ? "another user" : "capabilities", -err,
		      o->user_given ? "to become another user is root's right"
				    : "the process does not have them itself, and "
				      "cannot pass them on",
		      "sudo rtscope app start --user $USER --capabilities ...; or, if "
		      "the program shall have them for every user: sudo setcap "
		      "cap_sys_nice,cap_ipc_lock+ep PROGRAM");
}

/* --- read back ------------------------------------------------------------------- */

static int read_back(struct starting *s)
{
	char what[96];
	int err = policy_get(&s->got);

	if (!err)
		err = cpulist_get_affinity(&s->cpus);
	if (err)
		return refuse(s, "", -err, "what it has cannot be read back", "");
	s->io = (int)syscall(SYS_ioprio_get, IO_WHO, 0);
	getrlimit(RLIMIT_RTPRIO, &s->rtprio);
	getrlimit(RLIMIT_NICE, &s->nice);
	getrlimit(RLIMIT_MEMLOCK, &s->memlock);
	name_policy(&s->want, what, sizeof(what));
	if (!is_as_wanted(&s->got, &s->want)) {
		char why[160], got[96];

		name_policy(&s->got, got, sizeof(got));
		snprintf(why, sizeof(why), "the kernel took it, and the process has %s",
			 got);
		return refuse(s, what, 0, why, "");
	}
	if (s->o->cpus_given && !cpulist_equal(&s->cpus, &s->o->cpus))
		return refuse(s, "its CPUs", 0, "they changed meanwhile", "");
	s->ambient = rights_ambient();
	if (s->capabilities & ~s->ambient)
		return refuse(s, "capabilities", 0,
			      "the kernel took them, and they are not in CapAmb", "");
	return EXIT_DONE;
}

static void emit_limit(struct emit *e, const char *key, const struct rlimit *limit)
{
	if (limit->rlim_cur == RLIM_INFINITY)
		emit_null(e, key);
	else
		emit_int(e, key, (int64_t)limit->rlim_cur);
}

/* The number in "/dev/fd/3" and the like: to open that again would empty a file behind
 * it, and fail for a socket. -1: another path. */
static int descriptor_in(const char *path)
{
	int fd, end = 0;

	if (strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	return sscanf(path, "/dev/fd/%d%n", &fd, &end) == 1 && !path[end] && fd >= 0
		       ? fd
		       : -1;
}

/* A start that is refused leaves no file behind, and an old one as it was. */
static void forget_given(const struct starting *s)
{
	if (s->made_given)
		unlink(s->o->given_path);
}

static void write_given(const struct starting *s, int64_t locked_kb)
{
	static struct emit e;
	char text[CPULIST_TEXT_MAX], capabilities[20];

	if (s->given < 0)
		return;
	if (descriptor_in(s->o->given_path) < 0)
		(void)!ftruncate(s->given, 0); /* refused by what is no file: fine */
	cpulist_format(&s->cpus, text, sizeof(text));
	snprintf(capabilities, sizeof(capabilities), "%016llx",
		 (unsigned long long)s->ambient);
	emit_init(&e, s->given);
	emit_begin(&e, "given");
	emit_int(&e, "pid", s->pid);
	emit_text(&e, "program", s->program);
	emit_text(&e, "policy", policy_name(s->got.kind));
	emit_int(&e, "priority", s->got.priority);
	emit_int(&e, "nice", s->got.nice);
	emit_int(&e, "runtime_ns",
		 s->got.kind == POLICY_DEADLINE ? (int64_t)s->got.runtime_ns : 0);
	emit_int(&e, "deadline_ns",
		 s->got.kind == POLICY_DEADLINE ? (int64_t)s->got.deadline_ns : 0);
	emit_int(&e, "period_ns",
		 s->got.kind == POLICY_DEADLINE ? (int64_t)s->got.period_ns : 0);
	emit_bool(&e, "reset_on_fork", s->got.reset_on_fork);
	emit_text(&e, "affinity", text);
	emit_bool(&e, "shield", s->o->shield);
	emit_text(&e, "io_class", io_classes[s->io >> IO_SHIFT & 3]);
	emit_int(&e, "io_level", s->io & 7);
	emit_int(&e, "uid", s->o->user_given ? s->o->uid : getuid());
	emit_text(&e, "capabilities", capabilities);
	emit_limit(&e, "rtprio_limit", &s->rtprio);
	emit_limit(&e, "memlock_limit_bytes", &s->memlock);
	emit_int(&e, "locked_kb", locked_kb);
	if (emit_end(&e))
		fprintf(stderr, "rtscope: cannot write what %s was given: %s\n",
			s->program, strerror(e.error));
}

/* --- the lock -------------------------------------------------------------------- */

/* In the tracer: s is shared with the process that has become the program. */
static void after_lock(const struct startlock *lock, void *arg)
{
	struct starting *s = arg;
	struct refusal refusal = { 0 };
	char what[96];

	if (!lock->failed) {
		write_given(s, lock->locked_kb);
		if (s->memlock.rlim_cur != RLIM_INFINITY && !s->may_lock)
			fprintf(stderr,
				"rtscope: note: %s may lock %lu KiB (RLIMIT_MEMLOCK): "
				"beyond that its malloc(), mmap() and new threads "
				"fail\n",
				s->program, (unsigned long)(s->memlock.rlim_cur >> 10));
		return;
	}
	forget_given(s);
	snprintf(what, sizeof(what), "locked memory (%s)", lock->failed);
	if (lock->err == ENOTSUP)
		snprintf(refusal.why, sizeof(refusal.why),
			 "it has the registers of another architecture");
	else
		startadvice_lock(lock->err, &refusal);
	startadvice_print(s->program, what, lock->err, refusal.why, refusal.remedy);
}

static int begin_lock(struct starting *s, const char *path)
{
	struct refusal refusal;
	int err;

	if (!s->o->lock_memory)
		return EXIT_DONE;
	if (!rights_have(RIGHT_SYS_PTRACE) && startprogram_has_rights(path))
		return refuse(s, "locked memory", 0,
			      "its file has rights of its own (set-user-ID or "
			      "capabilities), which a traced program does not get, and "
			      "the lock needs a trace",
			      "sudo rtscope app start --user $USER --lock ...");
	s->may_lock = rights_have(RIGHT_IPC_LOCK);
	err = startlock_begin(after_lock, s);
	if (!err)
		return EXIT_DONE;
	startadvice_trace(-err, &refusal);
	return refuse(s, "locked memory", -err, refusal.why, refusal.remedy);
}

/* What stands in for a closed standard stream in the agent is none of the program's. */
static void close_stand_ins(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFL) & O_PATH)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* --- all of it ------------------------------------------------------------------- */

/* What is not asked for stays as it is. */
static int choose_policy(struct starting *s)
{
	const struct options *o = s->o;
	int err = policy_get(&s->want);

	if (err)
		return refuse(s, "", -err, "its policy cannot be read", "");
	if (o->policy_given) {
		const int nice = s->want.nice;

		s->want = o->policy;
		if (s->want.kind == POLICY_OTHER || s->want.kind == POLICY_BATCH)
			s->want.nice = nice;
		if (s->want.kind == POLICY_DEADLINE && !s->want.deadline_ns)
			s->want.deadline_ns = s->want.period_ns;
	}
	/* without it a SCHED_DEADLINE thread can make no other, and no process */
	if (o->reset_on_fork || s->want.kind == POLICY_DEADLINE)
		s->want.reset_on_fork = true;
	if (!o->nice_given)
		return EXIT_DONE;
	if (s->want.kind != POLICY_OTHER && s->want.kind != POLICY_BATCH)
		return refuse(s, "a nice value", 0,
			      "only policies other and batch have one",
			      "leave --nice out");
	s->want.nice = o->nice;
	return EXIT_DONE;
}

static int open_given(struct starting *s)
{
	int fd;

	s->given = -1;
	if (!s->o->given_path)
		return EXIT_DONE;
	fd = descriptor_in(s->o->given_path);
	if (fd >= 0) {
		s->given = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	} else {
		s->given = open(s->o->given_path,
				O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		s->made_given = s->given >= 0;
		if (s->given < 0 && errno == EEXIST)
			s->given = open(s->o->given_path, O_WRONLY | O_CLOEXEC);
	}
	if (s->given >= 0)
		return EXIT_DONE;
	fprintf(stderr, "rtscope: %s: %s; name another file with --json\n",
		s->o->given_path, strerror(errno));
	return EXIT_INVALID;
}

static int give(struct starting *s, const char *path)
{
	int status = choose_policy(s);

	if (!status)
		status = open_given(s);
	if (!status)
		raise_limits(s);
	if (!status)
		status = begin_lock(s, path);
	if (!status)
		status = take_shield(s);
	if (!status)
		status = take_cpus(s);
	if (!status)
		status = take_io(s);
	if (!status)
		status = take_policy(s);
	if (!status)
		status = take_user(s);
	return status ? status : read_back(s);
}

int start(const struct options *o)
{
	struct starting *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char path[PATH_MAX], mark[64];
	int status;

	if (s == MAP_FAILED)
		return EXIT_INVALID;
	*s = (struct starting){ .o = o, .program = o->operand[0], .pid = getpid() };
	if (!programfile_find(s->program, path, sizeof(path)))
		return startprogram_explain(s->program, errno);
	status = give(s, path);
	if (status) {
		forget_given(s);
		return status;
	}
	if (o->cpus_given)
		startadvice_isolated(s->program, &o->cpus);
	if (!o->lock_memory)
		write_given(s, 0);
	snprintf(mark, sizeof(mark), "%d%s", (int)getpid(),
		 o->lock_memory ? " lock" : "");
	setenv(MARK, mark, 1);
	close_stand_ins();
	execvp(s->program, o->operand);
	return startprogram_explain(s->program, errno);
}
