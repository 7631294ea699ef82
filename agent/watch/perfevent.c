/* SPDX-License-Identifier: MIT */
#include "watch/perfevent.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "files/slurp.h"
#include "watch/lastcloser.h"
#include "watch/perfregs.h"

#define PROBE_TYPE "/sys/bus/event_source/devices/uprobe/type"

#define SAMPLE_FIELDS                                                                  \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME |                  \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |                  \
	 PERF_SAMPLE_STACK_USER)

/* See watchform.c, which reads them. */
#define FLOW_FIELDS                                                                    \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW)

#define NEVER (UINT64_C(1) << 62) /* a sample after so many events */

void perfevent_raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int perfevent_probe_type(void)
{
	int64_t type;
	int err = slurp_int(PROBE_TYPE, &type);

	return err ? err : (int)type;
}

static int open_event(struct perf_event_attr *attr, int tid, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1,
			      PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 && errno == EMFILE && lastcloser_release())
		fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1,
				  PERF_FLAG_FD_CLOEXEC);
	return fd;
}

static int open_one(const struct perfevent_kind *kind, int tid, int cpu, bool sampler)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = kind->type,
		.config = kind->config,
		.disabled = 1,
		.exclude_kernel = kind->user_only,
		.exclude_hv = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	if (cpu != PERFEVENT_OWN && kind->of_cpu) {
		attr.type = PERF_TYPE_TRACEPOINT;
		attr.config = kind->of_cpu;
		attr.exclude_kernel = 0; /* it is the kernel's doing */
	}
	if (kind->path) {
		attr.config1 = (uint64_t)(uintptr_t)kind->path;
		attr.config2 = kind->offset;
	}
	if (sampler) {
		attr.sample_period = 1;
		attr.sample_type = SAMPLE_FIELDS;
		attr.sample_regs_user = PERFREGS_MASK;
		attr.sample_stack_user = PERFEVENT_STACK_BYTES;
		/* the agent looks into the ring by itself: waking it would cost the
		 * watched thread an interrupt for each sample */
		attr.watermark = 1;
		attr.wakeup_watermark = UINT32_MAX;
	}
	return open_event(&attr, cpu == PERFEVENT_OWN ? tid : -1, cpu);
}

static uint64_t mode_fields(enum perfevent_more more)
{
	return more == PERFEVENT_MODE ? PERF_SAMPLE_REGS_USER : 0;
}

int perfevent_open_flow(uint32_t type, uint64_t config, int tid, int cpu,
			enum perfevent_more more)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config = config,
		.disabled = 1,
		.sample_period = 1,
		.sample_type = FLOW_FIELDS | mode_fields(more),
		.sample_regs_user = mode_fields(more) ? UINT64_C(1) << PERFREGS_IP : 0,
		.sample_id_all = 1,
		.context_switch = more == PERFEVENT_SWITCHES,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
	const int fd = open_event(&attr, tid, cpu);

	return fd < 0 ? -errno : fd;
}

int perfevent_filter_thread(char *out, size_t size, int tid, const char *filter)
{
	const int used = snprintf(
		out, size, filter ? "common_pid == %d && (%s)" : "common_pid == %d",
		tid, filter);

	return used < 0 || (size_t)used >= size ? -E2BIG : 0;
}

static int set_filter(int fd, const struct perfevent_kind *kind, int tid, int cpu)
{
	char text[PERFEVENT_FILTER];
	const char *filter = kind->filter;
	int err = 0;

	if (cpu != PERFEVENT_OWN && kind->of_cpu) {
		snprintf(text, sizeof(text), "pid == %d", tid);
		filter = text;
	} else if (cpu != PERFEVENT_OWN) {
		err = perfevent_filter_thread(text, sizeof(text), tid, filter);
		filter = text;
	}
	if (!err && filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0)
		err = -errno;
	return err;
}

/* perf_event_paranoid of 2 lets a user watch user space alone. */
static int open_permitted(struct perfevent_kind *kind, int tid, int cpu, bool sampler)
{
	int fd = open_one(kind, tid, cpu, sampler);
	int err;

	if (fd < 0 && errno == EACCES && !kind->user_only &&
	    kind->type == PERF_TYPE_SOFTWARE && cpu == PERFEVENT_OWN) {
		kind->user_only = true;
		fd = open_one(kind, tid, cpu, sampler);
		if (fd < 0 && errno == EACCES)
			kind->user_only = false;
	}
	if (fd < 0)
		return -errno;
	err = set_filter(fd, kind, tid, cpu);
	if (err)
		close(fd);
	return err ? err : fd;
}

bool perfevent_can_be_of_cpu(const struct perfevent_kind *kind)
{
	return kind->of_cpu || (kind->type == PERF_TYPE_TRACEPOINT && !kind->path);
}

int perfevent_open(struct perfevent *e, struct perfevent_kind *kind, int tid, int cpu)
{
	const bool copies = PERFREGS_MASK != 0 ? kind->sampled : false;
	int err;

	*e = (struct perfevent){ .counter_fd = -1, .sampler_fd = -1 };
	e->both = kind->by_hand && copies;
	e->is_probe = kind->path;
	if (!e->both) {
		e->counter_fd = open_permitted(kind, tid, cpu, PERFEVENT_NO_MORE);
		if (e->counter_fd < 0)
			return e->counter_fd;
	}
	if (!copies)
		return 0;
	e->sampler_fd = open_permitted(kind, tid, cpu, true);
	if (e->both)
		e->counter_fd = e->sampler_fd;
	if (e->sampler_fd >= 0 && ioctl(e->sampler_fd, PERF_EVENT_IOC_ID, &e->id) == 0)
		return 0;
	err = e->sampler_fd < 0 ? e->sampler_fd : -errno;
	perfevent_close(e);
	return err;
}

static int map_ring(struct perfring *r, int fd, size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	*r = (struct perfring){ .map = map, .fd = fd, .map_bytes = page + bytes };
	return 0;
}

int perfring_join(struct perfring *r, struct perfevent *e, size_t bytes)
{
	int err = 0;

	if (!r->map)
		err = map_ring(r, e->sampler_fd, bytes);
	else if (ioctl(e->sampler_fd, PERF_EVENT_IOC_SET_OUTPUT, r->fd) < 0)
		err = -errno;
	return err;
}

static int map_own(struct perfring *r, int fd, size_t bytes)
{
	const int err = fd < 0 ? fd : map_ring(r, fd, bytes);

	if (err && fd >= 0)
		close(fd);
	r->own = !err;
	return err;
}

int perfring_make(struct perfring *r, int cpu, size_t bytes)
{
	return map_own(r,
		       perfevent_open_flow(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, -1,
					   cpu, PERFEVENT_NO_MORE),
		       bytes);
}

int perfring_make_of_thread(struct perfring *r, int tid, size_t bytes)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1, /* as any user may */
		.comm = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = UINT32_MAX,
	};
	const int fd = open_event(&attr, tid, -1);

	return map_own(r, fd < 0 ? -errno : fd, bytes);
}

int perfevent_count_on(struct perfevent *e)
{
	return ioctl(e->counter_fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

int perfevent_grant(struct perfevent *e, unsigned int samples)
{
	if (ioctl(e->sampler_fd, PERF_EVENT_IOC_REFRESH, samples) < 0)
		return -errno;
	e->granted += samples;
	return 0;
}

int perfevent_run(struct perfevent *e, bool running)
{
	const uint64_t period = running ? 1 : NEVER;

	if (e->both) {
		if (ioctl(e->sampler_fd, PERF_EVENT_IOC_PERIOD, &period) < 0)
			return -errno;
	} else if (ioctl(e->sampler_fd,
			 running ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE,
			 0) < 0)
		return -errno;
	e->running = running;
	return 0;
}

int64_t perfevent_count(const struct perfevent *e)
{
	uint64_t count;

	if (e->counter_fd < 0 ||
	    read(e->counter_fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
		return -1;
	return (int64_t)count;
}

/* Takes numbers and bytes off a record, never beyond its end. */
struct cursor {
	const unsigned char *at;
	size_t left;
	bool cut;
};

static const unsigned char *take(struct cursor *c, size_t bytes)
{
	const unsigned char *at = c->at;

	if (bytes > c->left) {
		c->cut = true;
		return at;
	}
	c->at += bytes;
	c->left -= bytes;
	return at;
}

static uint64_t take_number(struct cursor *c)
{
	const unsigned char *at = take(c, sizeof(uint64_t));
	uint64_t number = 0;

	if (!c->cut)
		memcpy(&number, at, sizeof(number));
	return number;
}

/* Its size and it are a number of 8 bytes together. */
static void take_raw(struct cursor *c, struct perfsample *out)
{
	const unsigned char *at = take(c, sizeof(uint32_t));
	uint32_t bytes = 0;

	if (!c->cut)
		memcpy(&bytes, at, sizeof(bytes));
	out->raw = take(c, bytes);
	out->raw_bytes = c->cut ? 0 : bytes;
}

/* In the order of SAMPLE_FIELDS, which the kernel's header gives. */
static bool read_sample(struct cursor *c, struct perfsample *out)
{
	uint64_t copied, room;

	*out = (struct perfsample){ .id = take_number(c) };
	out->ip = take_number(c);
	out->t_ns = (int64_t)take_number(c);
	out->address = take_number(c);
	take_raw(c, out);
	out->abi = take_number(c);
	if (out->abi) {
		out->regs_bytes =
			sizeof(uint64_t) * (size_t)__builtin_popcountll(PERFREGS_MASK);
		out->regs = take(c, out->regs_bytes);
	}
	room = take_number(c);
	if (room) {
		out->stack = take(c, room);
		copied = take_number(c);
		out->stack_bytes = copied < room ? copied : room;
	}
	return !c->cut;
}

/* Of PERF_RECORD_COMM: two numbers of 4 bytes, the name, and the time. */
static bool read_program(const struct perf_event_header *header,
			 const unsigned char *record, struct perfsample *out)
{
	const size_t name = sizeof(*header) + 2 * sizeof(uint32_t);

	if (header->type != PERF_RECORD_COMM ||
	    !(header->misc & PERF_RECORD_MISC_COMM_EXEC) ||
	    header->size < name + 2 * sizeof(uint64_t))
		return false;
	*out = (struct perfsample){ .program = (const char *)record + name };
	memcpy(&out->t_ns, record + header->size - sizeof(out->t_ns),
	       sizeof(out->t_ns));
	return true;
}

/* A record may go around the end of the ring. */
static void copy_out(const struct perfring *r, uint64_t from, void *to, size_t bytes)
{
	const struct perf_event_mmap_page *page = r->map;
	const size_t first = (size_t)sysconf(_SC_PAGESIZE);
	const size_t size = r->map_bytes - first;
	const unsigned char *data = (const unsigned char *)page + first;
	const size_t begin = (size_t)(from % size);
	const size_t part = bytes < size - begin ? bytes : size - begin;

	memcpy(to, data + begin, part);
	memcpy((unsigned char *)to + part, data, bytes - part);
}

bool perfring_next(struct perfring *r, unsigned char *buffer)
{
	struct perf_event_mmap_page *page = r->map;
	struct perf_event_header header;
	bool found = false;

	if (!page)
		return false;
	/* acquire: pairs with the kernel's release of the records before it */
	if (!r->looking)
		r->end = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	while (!found && r->end - r->tail >= sizeof(header)) {
		copy_out(r, r->tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > r->end - r->tail)
			break; /* no record of a kernel */
		copy_out(r, r->tail, buffer, header.size);
		r->tail += header.size;
		found = header.type != PERF_RECORD_LOST;
		if (!found) {
			struct cursor c = { buffer + sizeof(header) + sizeof(uint64_t),
					    sizeof(uint64_t), false };

			r->lost += take_number(&c);
		}
	}
	r->looking = found;
	/* release: the record was copied before the kernel may write over it */
	__atomic_store_n(&page->data_tail, r->tail, __ATOMIC_RELEASE);
	return found;
}

bool perfring_take(struct perfring *r, unsigned char *buffer, struct perfsample *out)
{
	struct perf_event_header header;

	while (perfring_next(r, buffer)) {
		memcpy(&header, buffer, sizeof(header));
		if (read_program(&header, buffer, out))
			return true;
		if (header.type == PERF_RECORD_SAMPLE) {
			struct cursor c = { buffer + sizeof(header),
					    header.size - sizeof(header), false };

			if (read_sample(&c, out))
				return true;
		}
	}
	return false;
}

void perfevent_end(int fd)
{
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	lastcloser_take(fd);
}

static void end_probe(int fd)
{
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	lastcloser_keep(fd);
}

void perfevent_close(struct perfevent *e)
{
	void (*const end)(int) = e->is_probe ? end_probe : perfevent_end;

	if (e->counter_fd >= 0)
		end(e->counter_fd);
	if (e->sampler_fd >= 0 && !e->both)
		end(e->sampler_fd);
	e->counter_fd = e->sampler_fd = -1;
}

void perfring_close(struct perfring *r)
{
	if (r->map)
		munmap(r->map, r->map_bytes);
	if (r->own)
		perfevent_end(r->fd);
	*r = (struct perfring){ .map = NULL };
}
