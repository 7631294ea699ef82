/* SPDX-License-Identifier: MIT */
#include "cycles/cyclepick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Letters of prev_state; the bit above them says that it was preempted. */
#define SLEEPS 0xff
/* enum trace_flag_type: the current thread is interrupted, and does nothing itself */
#define INTERRUPTED 0x18
/* enum hrtimer_mode */
#define MODE_REL 1

struct walk {
	struct cyclepick *p;
	unsigned int cpu;
	cyclepick_take *take;
	void *context;
};

static struct pick_field field_of(const char *text, const char *name)
{
	struct pick_field f = { 0 };
	char wanted[40];
	const char *line, *offset, *size;

	snprintf(wanted, sizeof(wanted), " %s;", name);
	line = strstr(text, wanted);
	offset = line ? strstr(line, "offset:") : NULL;
	size = line ? strstr(line, "size:") : NULL;
	if (!offset || !size || sscanf(offset, "offset:%u", &f.at) != 1 ||
	    sscanf(size, "size:%u", &f.size) != 1 || f.size > 8)
		return (struct pick_field){ 0 };
	return f;
}

static unsigned int id_of(const char *text)
{
	const char *id = strstr(text, "ID:");

	return id ? (unsigned int)strtoul(id + 3, NULL, 10) : 0;
}

void cyclepick_format(struct cyclepick *p, const char *name, const char *text)
{
	if (strcmp(name, "sched_switch") == 0) {
		p->id_switch = id_of(text);
		p->common_pid = field_of(text, "common_pid");
		p->common_flags = field_of(text, "common_flags");
		p->prev_pid = field_of(text, "prev_pid");
		p->prev_state = field_of(text, "prev_state");
		p->next_pid = field_of(text, "next_pid");
	} else if (strcmp(name, "sched_waking") == 0) {
		p->id_waking = id_of(text);
		p->waking_pid = field_of(text, "pid");
	} else if (strcmp(name, "hrtimer_start") == 0) {
		p->id_start = id_of(text);
		p->start_timer = field_of(text, "hrtimer");
		p->function = field_of(text, "function");
		p->softexpires = field_of(text, "softexpires");
		p->mode = field_of(text, "mode");
	} else if (strcmp(name, "hrtimer_expire_entry") == 0) {
		p->id_entry = id_of(text);
		p->entry_timer = field_of(text, "hrtimer");
		p->now = field_of(text, "now");
	} else if (strcmp(name, "hrtimer_expire_exit") == 0) {
		p->id_exit = id_of(text);
	} else if (strcmp(name, "sys_enter") == 0) {
		p->id_call = id_of(text);
		p->call = field_of(text, "id");
		p->argument = p->call;
		p->argument.at += p->call.size; /* the first of six of this size */
	} else if (strcmp(name, "sys_exit") == 0) {
		p->id_return = id_of(text);
	}
}

bool cyclepick_works(const struct cyclepick *p)
{
	return p->id_switch && p->id_waking && p->common_pid.size && p->prev_pid.size &&
	       p->prev_state.size && p->next_pid.size && p->waking_pid.size;
}

bool cyclepick_watch(struct cyclepick *p, int tid)
{
	const uint8_t bit = (uint8_t)(1u << (tid & 7));

	if (tid <= 0 || tid >= CYCLEPICK_MAX_TID || p->watched[tid >> 3] & bit)
		return false;
	p->watched[tid >> 3] |= bit;
	return true;
}

static bool is_watched(const struct cyclepick *p, int64_t tid)
{
	return tid > 0 && tid < CYCLEPICK_MAX_TID &&
	       p->watched[tid >> 3] >> (tid & 7) & 1;
}

/* Little-endian, as all four architectures are; 0 beyond the end of the event. */
static uint64_t number(const unsigned char *event, uint32_t size, struct pick_field f)
{
	uint64_t value = 0;

	if (f.size && f.at + f.size <= size)
		memcpy(&value, event + f.at, f.size);
	return value;
}

static void give(const struct walk *w, struct pick pick)
{
	pick.cpu = w->cpu;
	pick.seq = w->p->seq++;
	w->take(w->context, &pick);
}

static void take_switch(const struct walk *w, int64_t at_ns, const unsigned char *event,
			uint32_t size)
{
	const struct cyclepick *p = w->p;
	const int out = (int)number(event, size, p->prev_pid);
	const int in = (int)number(event, size, p->next_pid);

	if (is_watched(p, out))
		give(w,
		     (struct pick){
			     .at_ns = at_ns,
			     .kind = PICK_OUT,
			     .tid = out,
			     .runnable = !(number(event, size, p->prev_state) & SLEEPS),
		     });
	if (is_watched(p, in))
		give(w, (struct pick){ .at_ns = at_ns, .kind = PICK_IN, .tid = in });
}

static void take_call(const struct walk *w, struct pick pick,
		      const unsigned char *event, uint32_t size)
{
	const struct cyclepick *p = w->p;

	if (!is_watched(p, pick.by))
		return;
	pick.tid = pick.by;
	if (pick.kind == PICK_WAITS)
		pick.wait = (number(event, size, p->call) + 1) << 48 ^
			    number(event, size, p->argument);
	give(w, pick);
}

static void take_event(void *context, int64_t at_ns, const unsigned char *event,
		       uint32_t size)
{
	const struct walk *w = context;
	const struct cyclepick *p = w->p;
	const struct pick_field type = { 0, 2 };
	const unsigned int id = (unsigned int)number(event, size, type);
	struct pick pick = { .at_ns = at_ns,
			     .by = (int)number(event, size, p->common_pid) };

	if (!id)
		return;
	if (id == p->id_switch) {
		take_switch(w, at_ns, event, size);
		return;
	}
	if (id == p->id_call || id == p->id_return) {
		pick.kind = id == p->id_call ? PICK_WAITS : PICK_GOES_ON;
		take_call(w, pick, event, size);
		return;
	}
	if (id == p->id_waking) {
		pick.kind = PICK_WAKING;
		pick.tid = (int)number(event, size, p->waking_pid);
		if (!is_watched(p, pick.tid))
			return;
	} else if (id == p->id_start) {
		pick.kind = PICK_ARMED;
		if (is_watched(p, pick.by) &&
		    !(number(event, size, p->common_flags) & INTERRUPTED))
			pick.tid = pick.by;
		pick.timer = number(event, size, p->start_timer);
		pick.function = number(event, size, p->function);
		pick.when_ns = (int64_t)number(event, size, p->softexpires);
		pick.relative = number(event, size, p->mode) & MODE_REL;
	} else if (id == p->id_entry) {
		pick.kind = PICK_EXPIRING;
		pick.timer = number(event, size, p->entry_timer);
		pick.when_ns = (int64_t)number(event, size, p->now);
	} else if (id == p->id_exit) {
		pick.kind = PICK_EXPIRED;
	} else {
		return;
	}
	give(w, pick);
}

void cyclepick_page(struct cyclepick *p, const struct tracepage_layout *layout,
		    const unsigned char *page, unsigned int cpu, cyclepick_take *take,
		    void *context)
{
	struct walk w = { p, cpu, take, context };

	tracepage_events(layout, page, take_event, &w);
}
