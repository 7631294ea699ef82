/* A real-time thread `cycle` whose system calls are those that the command line names. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 5000000

static const char *kind;
static int file, other, directory, fifo, pair[2], quiet[2], epoll, timer, sem, queue;
static mqd_t mq;
static char *map, buffer[4096];

static int is(const char *name)
{
	return strcmp(kind, name) == 0;
}

static void files(void)
{
	struct iovec v = { buffer, 512 };
	struct stat st;

	stat("/etc/hostname", &st);
	access("/etc/passwd", R_OK);
	ftruncate(file, 8192);
	rename("a", "b");
	rename("b", "a");
	fallocate(file, 0, 0, 4096);
	sync_file_range(file, 0, 4096, 2);
	msync(map, 4096, MS_SYNC);
	preadv(file, &v, 1, 0);
	pwritev(file, &v, 1, 0);
	unlink("nothing");
	close(open("/dev/null", O_RDONLY));
}

static void messages(void)
{
	struct timespec soon, wait = { 0, 200000 };
	struct sembuf take = { 0, -1, 0 };
	struct iovec v = { buffer, 64 };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } };

	clock_gettime(CLOCK_REALTIME, &soon);
	mq_timedreceive(mq, buffer, 64, NULL, &soon);
	semtimedop(sem, &take, 1, &wait);
	sendmmsg(pair[0], &m, 1, 0);
	recvmmsg(pair[1], &m, 1, 0, NULL);
	getrandom(buffer, 64, 0);
	syscall(SYS_membarrier, 1, 0, 0);
}

static void others(void)
{
	struct flock whole = { .l_type = F_WRLCK };
	struct msgbuf message = { .mtype = 1 };
	struct statx stx;
	int number;

	number = open("fifo", O_RDWR);
	close(number);
	flock(file, LOCK_EX);
	flock(file, LOCK_UN);
	fcntl(file, F_SETLKW, &whole);
	msgsnd(queue, &message, 1, 0);
	msgrcv(queue, &message, 1, 0, 0);
	lseek(other, 0, SEEK_SET);
	splice(other, NULL, fifo, NULL, 64, 0);
	read(fifo, buffer, 64);
	lseek(directory, 0, SEEK_SET);
	syscall(SYS_getdents64, directory, buffer, sizeof(buffer));
	statx(AT_FDCWD, "a", 0, STATX_SIZE, &stx);
	sched_yield();
	copy_file_range(other, &(loff_t){ 0 }, file, &(loff_t){ 0 }, 64, 0);
	mkdir("d", 0700);
	rmdir("d");
	fsync(file);
	madvise(map, 4096, MADV_WILLNEED);
	munmap(mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0),
	       4096);
}

/* None of them can block. */
static void harmless(void)
{
	struct pollfd wanted = { quiet[0], POLLIN, 0 };
	const struct timespec none = { 0, 0 };
	struct sembuf take = { 0, -1, IPC_NOWAIT };
	struct timeval no_time = { 0, 0 };
	struct epoll_event found;

	send(quiet[1], buffer, 64, 0);
	recv(quiet[0], buffer, 64, 0);
	recv(pair[0], buffer, 64, MSG_DONTWAIT);
	poll(&wanted, 1, 0);
	ppoll(&wanted, 1, &none, NULL);
	select(0, NULL, NULL, NULL, &no_time);
	epoll_wait(epoll, &found, 1, 0);
	semop(sem, &take, 1);
	flock(file, LOCK_SH | LOCK_NB);
	fcntl(file, F_GETFL);
	lseek(file, 0, SEEK_SET);
	getrandom(buffer, 8, GRND_NONBLOCK);
	syscall(SYS_gettid);
}

/* Descriptors that are closed, or whose flags are others, before anybody could look. */
static void brief(void)
{
	struct iovec some = { buffer, 64 };
	int number = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	recv(number, buffer, 64, 0);
	close(number);
	number = dup(quiet[0]);
	read(number, buffer, 64);
	close(number);
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	readv(pair[0], &some, 1);
	fcntl(pair[0], F_SETFL, 0);
	fcntl(quiet[1], F_SETFL, 0); /* as it is then, it does block */
	writev(quiet[1], &some, 1);
	fcntl(quiet[1], F_SETFL, O_NONBLOCK);
	number = open("a", O_WRONLY); /* a file does block */
	pwrite(number, buffer, 64, 0);
	close(number);
}

static void next_cycle(struct timespec *next)
{
	struct pollfd wanted = { timer, POLLIN, 0 };
	struct epoll_event found;
	uint64_t number;

	if (is("poll"))
		poll(&wanted, 1, -1);
	else if (is("ppoll"))
		ppoll(&wanted, 1, NULL, NULL);
	else if (is("epoll"))
		epoll_wait(epoll, &found, 1, -1);
	else if (is("select")) {
		fd_set set;

		FD_ZERO(&set);
		FD_SET(timer, &set);
		select(timer + 1, &set, NULL, NULL, NULL);
	} else if (!is("timerfd")) {
		next->tv_nsec += PERIOD_NS;
		if (next->tv_nsec >= 1000000000) {
			next->tv_nsec -= 1000000000;
			next->tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
		return;
	}
	if (read(timer, &number, sizeof(number)) < 0)
		exit(4);
}

/* The number of another call for a program of 64 bits. */
static void int80(void)
{
#ifdef __x86_64__
	const long write32 = 4;
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(write32), "b"((long)file), "c"(0), "d"(0)
			 : "memory", "cc");
#endif
}

static void *cycle(void *unused)
{
	struct timespec next;

	(void)unused;
	pthread_setname_np(pthread_self(), "cycle");
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		next_cycle(&next);
		if (is("many")) {
			files();
			messages();
		} else if (is("others")) {
			others();
		} else if (is("harmless")) {
			harmless();
		} else if (is("brief")) {
			brief();
		} else if (is("int80")) {
			int80();
		} else if (is("within")) {
			poll(NULL, 0, 1);
		}
	}
	return NULL;
}

static void prepare(const char *place)
{
	const struct itimerspec period = { { 0, PERIOD_NS }, { 0, PERIOD_NS } };
	struct mq_attr of_queue = { .mq_maxmsg = 4, .mq_msgsize = 64 };
	struct epoll_event wanted = { .events = EPOLLIN };
	int ends[2];

	if (chdir(place))
		exit(3);
	file = open("a", O_RDWR | O_CREAT, 0600);
	other = open("c", O_RDWR | O_CREAT, 0600);
	ftruncate(other, 8192);
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
	directory = open(".", O_RDONLY | O_DIRECTORY);
	mkfifo("fifo", 0600);
	fifo = open("fifo", O_RDWR);
	if (pipe(ends) || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, quiet))
		exit(3);
	mq = mq_open("/rtscope-calls", O_RDWR | O_CREAT, 0600, &of_queue);
	mq_unlink("/rtscope-calls");
	sem = semget(IPC_PRIVATE, 1, 0600);
	queue = msgget(IPC_PRIVATE, 0600);
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	timerfd_settime(timer, 0, &period, NULL);
	epoll = epoll_create1(0);
	if (is("epoll"))
		epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &wanted);
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 61 };
	pthread_attr_t attr;
	pthread_t thread;

	if (argc != 3 || mlockall(MCL_CURRENT | MCL_FUTURE))
		return 3;
	kind = argv[1];
	prepare(argv[2]);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	if (pthread_create(&thread, &attr, cycle, NULL))
		return 3;
	alarm(120);
	pthread_join(thread, NULL);
	return 0;
}
