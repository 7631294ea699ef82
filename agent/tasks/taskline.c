/* SPDX-License-Identifier: MIT */
#include "tasks/taskline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thread/policy.h"

#define PF_KTHREAD    0x00200000 /* include/linux/sched.h, stable since 2.6.27 */
#define MAX_UNREAD    8
#define NAME_HEX_SIZE 256

/* What could not be read, and why: for the end of the line. */
struct unreadable {
	const char *key[MAX_UNREAD], *why[MAX_UNREAD];
	unsigned int count;
};

static void note(struct unreadable *u, const char *key, const char *why)
{
	u->key[u->count] = key;
	u->why[u->count++] = why;
}

static void emit_null_because(struct emit *e, const char *key, struct unreadable *u,
			      const char *why)
{
	emit_null(e, key);
	note(u, key, why);
}

/* The bytes of a name that is no UTF-8, in hexadecimal: in `name` each is a '?'. */
static void emit_name(struct emit *e, const struct taskstat *stat)
{
	char hex[NAME_HEX_SIZE];
	size_t used = 0;

	emit_bytes(e, "name", stat->name, stat->name_size);
	if (emit_is_utf8(stat->name, stat->name_size)) {
		emit_null(e, "name_hex");
		return;
	}
	for (size_t i = 0; i < stat->name_size && used + 2 < sizeof(hex); i++)
		used += (size_t)snprintf(hex + used, sizeof(hex) - used, "%02x",
					 (unsigned char)stat->name[i]);
	emit_bytes(e, "name_hex", hex, used);
}

static void emit_policy_name(struct emit *e, uint32_t policy)
{
	const char *name = schedattr_policy_name(policy);
	char number[24];

	snprintf(number, sizeof(number), "policy-%u", policy);
	emit_text(e, "policy", name ? name : number);
}

static void emit_deadline(struct emit *e, const struct schedattr *attr)
{
	if (attr->policy != POLICY_DEADLINE) {
		emit_null(e, "deadline");
		return;
	}
	emit_open(e, "deadline", '{');
	emit_int(e, "runtime_ns", (int64_t)attr->runtime_ns);
	emit_int(e, "deadline_ns", (int64_t)attr->deadline_ns);
	emit_int(e, "period_ns", (int64_t)attr->period_ns);
	emit_bool(e, "reclaim", attr->flags & SCHEDATTR_RECLAIM);
	emit_bool(e, "overrun_signal", attr->flags & SCHEDATTR_OVERRUN_SIGNAL);
	emit_close(e, '}');
}

/* Before 6.12 the kernel writes 0 there. */
static void emit_slice(struct emit *e, const struct schedattr *attr)
{
	bool fair = attr->policy == POLICY_OTHER || attr->policy == POLICY_BATCH ||
		    attr->policy == POLICY_IDLE;

	if (fair && attr->runtime_ns)
		emit_int(e, "slice_ns", (int64_t)attr->runtime_ns);
	else
		emit_null(e, "slice_ns");
}

static void emit_clamp(struct emit *e, const struct taskline *t)
{
	if (!t->util_clamp || t->attr.size < sizeof(t->attr)) {
		emit_null(e, "util_clamp");
		return;
	}
	emit_open(e, "util_clamp", '[');
	emit_int(e, NULL, t->attr.util_min);
	emit_int(e, NULL, t->attr.util_max);
	emit_close(e, ']');
}

static void emit_attr(struct emit *e, const struct taskline *t, struct unreadable *u)
{
	if (t->attr_error) {
		const char *why = strerror(-t->attr_error);

		emit_policy_name(e, t->stat.policy);
		emit_int(e, "priority", t->stat.priority);
		emit_null_because(e, "reset_on_fork", u, why);
		emit_null_because(e, "deadline", u, why);
		emit_null_because(e, "slice_ns", u, why);
		emit_null_because(e, "util_clamp", u, why);
		return;
	}
	emit_policy_name(e, t->attr.policy);
	emit_int(e, "priority", t->attr.priority);
	emit_bool(e, "reset_on_fork", t->attr.flags & SCHEDATTR_RESET_ON_FORK);
	emit_deadline(e, &t->attr);
	emit_slice(e, &t->attr);
	emit_clamp(e, t);
}

static void emit_status_count(struct emit *e, const struct taskline *t, const char *key,
			      const char *in_file, struct unreadable *u)
{
	size_t size;
	const char *text;

	if (t->status_error) {
		emit_null_because(e, key, u, strerror(-t->status_error));
		return;
	}
	text = taskstatus_find(t->status, in_file, &size);
	if (text)
		emit_int(e, key, strtoll(text, NULL, 10));
	else
		emit_null_because(e, key, u, "not in the status file");
}

static void emit_status(struct emit *e, const struct taskline *t, struct unreadable *u)
{
	size_t size;
	const char *cpus = NULL;

	if (!t->status_error)
		cpus = taskstatus_find(t->status, "Cpus_allowed_list", &size);
	if (cpus)
		emit_bytes(e, "cpus", cpus, size);
	else
		emit_null_because(e, "cpus", u,
				  t->status_error ? strerror(-t->status_error)
						  : "not in the status file");
	emit_status_count(e, t, "voluntary_switches", "voluntary_ctxt_switches", u);
	emit_status_count(e, t, "involuntary_switches", "nonvoluntary_ctxt_switches",
			  u);
}

/* The effective ones, as the status file writes them: 16 hexadecimal digits. */
static void emit_capabilities(struct emit *e, const struct taskline *t)
{
	size_t size;
	const char *text =
		t->status_error ? NULL : taskstatus_find(t->status, "CapEff", &size);

	if (text)
		emit_bytes(e, "capabilities", text, size);
	else
		emit_null(e, "capabilities");
}

static void emit_cgroup(struct emit *e, const struct taskline *t)
{
	size_t size;
	const char *path = t->cgroup ? taskcgroup_find(t->cgroup, &size) : NULL;

	if (path)
		emit_bytes(e, "cgroup", path, size);
	else
		emit_null(e, "cgroup");
}

static void emit_time(struct emit *e, const struct taskline *t)
{
	emit_int(e, "user_ns", t->stat.user_ticks * t->tick_ns);
	emit_int(e, "system_ns", t->stat.system_ticks * t->tick_ns);
	emit_int(e, "cpu_time_ns", t->cpu_time_ns);
	emit_bool(e, "cpu_time_exact", t->cpu_time_exact);
	if (t->has_window) {
		emit_int(e, "window_ns", t->window_ns);
		emit_int(e, "window_cpu_ns", t->window_cpu_ns);
	} else {
		emit_null(e, "window_ns");
		emit_null(e, "window_cpu_ns");
	}
}

void taskline_emit(struct emit *e, const struct taskline *t)
{
	struct unreadable u = { .count = 0 };

	emit_begin(e, "task");
	emit_int(e, "pid", t->pid);
	emit_int(e, "tid", t->tid);
	emit_name(e, &t->stat);
	emit_text(e, "kind", t->stat.flags & PF_KTHREAD ? "kernel" : "user");
	emit_bytes(e, "state", &t->stat.state, 1);
	emit_attr(e, t, &u);
	emit_int(e, "nice", t->stat.nice);
	if (t->agree)
		emit_int(e, "kernel_priority", t->stat.effective);
	else
		emit_null_because(e, "kernel_priority", &u,
				  "its policy changed while it was read");
	emit_int(e, "last_cpu", t->stat.last_cpu);
	emit_status(e, t, &u);
	emit_int(e, "minor_faults", t->stat.minor_faults);
	emit_int(e, "major_faults", t->stat.major_faults);
	if (t->slack_error)
		emit_null_because(e, "timer_slack_ns", &u, strerror(-t->slack_error));
	else
		emit_int(e, "timer_slack_ns", t->timer_slack_ns);
	emit_time(e, t);
	emit_int(e, "started_ns", t->stat.start_ticks * t->tick_ns);
	emit_capabilities(e, t);
	emit_cgroup(e, t);
	emit_open(e, "unreadable", '{');
	for (unsigned int i = 0; i < u.count; i++)
		emit_text(e, u.key[i], u.why[i]);
	emit_close(e, '}');
	emit_end_later(e);
}
