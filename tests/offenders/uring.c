/* A thread `cycle` that waits for its next cycle in io_uring_enter(). KIND: `idle` does no
 * more; `submits` submits a write in each cycle and does not wait for it; `stalls` waits in
 * each cycle for a read, by a ring of its own, of what another thread writes late. */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PERIOD_NS 5000000
#define LATE_US   2000
#define ENTRIES   8

struct ring {
	int fd;
	uint32_t mask;
	_Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
	uint32_t *array;
	struct io_uring_sqe *sqes;
};

static const char *kind;
static int wanted[2], answer[2], event;

static void set_up(struct ring *r)
{
	struct io_uring_params p = { 0 };
	size_t bytes;
	char *at;

	r->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
	if (r->fd < 0 || !(p.features & IORING_FEAT_SINGLE_MMAP))
		exit(3);
	bytes = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
	if (bytes < p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe))
		bytes = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd,
		  IORING_OFF_SQ_RING);
	r->sqes = mmap(NULL, p.sq_entries * sizeof(*r->sqes), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
	if (at == MAP_FAILED || r->sqes == MAP_FAILED)
		exit(3);
	r->mask = *(uint32_t *)(at + p.sq_off.ring_mask);
	r->sq_tail = (_Atomic uint32_t *)(at + p.sq_off.tail);
	r->array = (uint32_t *)(at + p.sq_off.array);
	r->cq_head = (_Atomic uint32_t *)(at + p.cq_off.head);
	r->cq_tail = (_Atomic uint32_t *)(at + p.cq_off.tail);
}

__attribute__((noinline)) static void
enter(struct ring *r, const struct io_uring_sqe *sqe, unsigned int wait_for)
{
	const uint32_t tail = atomic_load(r->sq_tail);

	r->sqes[tail & r->mask] = *sqe;
	r->array[tail & r->mask] = tail & r->mask;
	atomic_store(r->sq_tail, tail + 1);
	if (syscall(SYS_io_uring_enter, r->fd, 1, wait_for,
		    wait_for ? IORING_ENTER_GETEVENTS : 0, NULL, 0) < 0)
		exit(4);
	atomic_store(r->cq_head, atomic_load(r->cq_tail));
}

static void next_cycle(struct ring *r)
{
	static struct __kernel_timespec period = { .tv_nsec = PERIOD_NS };
	const struct io_uring_sqe sqe = { .opcode = IORING_OP_TIMEOUT,
					  .addr = (uintptr_t)&period,
					  .len = 1 };

	enter(r, &sqe, 1);
}

static void submit(struct ring *r)
{
	static uint64_t one = 1;
	const struct io_uring_sqe sqe = { .opcode = IORING_OP_WRITE,
					  .fd = event,
					  .addr = (uintptr_t)&one,
					  .len = 8 };

	enter(r, &sqe, 0);
}

static void stall(struct ring *r)
{
	static char letter;
	const struct io_uring_sqe sqe = { .opcode = IORING_OP_READ,
					  .fd = answer[0],
					  .addr = (uintptr_t)&letter,
					  .len = 1 };

	if (write(wanted[1], "?", 1) != 1)
		exit(4);
	enter(r, &sqe, 1); /* stalls here */
}

static void *cycle(void *unused)
{
	struct ring sleep = { 0 }, work = { 0 };

	(void)unused;
	pthread_setname_np(pthread_self(), "cycle");
	set_up(&sleep);
	set_up(&work);
	for (;;) {
		next_cycle(&sleep);
		if (strcmp(kind, "submits") == 0)
			submit(&work);
		else if (strcmp(kind, "stalls") == 0)
			stall(&work);
	}
	return NULL;
}

static void *answer_late(void *unused)
{
	char letter;

	(void)unused;
	while (read(wanted[0], &letter, 1) == 1) {
		usleep(LATE_US);
		if (write(answer[1], "!", 1) != 1)
			break;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 61 };
	pthread_attr_t attr;
	pthread_t thread, other;

	if (argc != 2 || mlockall(MCL_CURRENT | MCL_FUTURE) || pipe(wanted) ||
	    pipe(answer))
		return 3;
	kind = argv[1];
	event = eventfd(0, EFD_NONBLOCK);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	if (pthread_create(&other, NULL, answer_late, NULL) ||
	    pthread_create(&thread, &attr, cycle, NULL))
		return 3;
	alarm(120);
	pthread_join(thread, NULL);
	return 0;
}
