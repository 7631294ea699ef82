// SPDX-License-Identifier: MIT
/* yard KIND: 0.3 s after its start, three times, what programs do to each other. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void go_to(int cpu)
{
	unsigned long mask = 1UL << cpu;

	syscall(SYS_sched_setaffinity, 0, sizeof(mask), &mask);
}

static void be(int policy, int priority)
{
	struct sched_param p = { .sched_priority = priority };

	if (syscall(SYS_sched_setscheduler, 0, policy, &p))
		perror("sched_setscheduler");
}

static void dig(long us)
{
	int64_t until = now_ns() + us * 1000;

	while (now_ns() < until)
		;
}

static void child(const char *name, int cpu, int policy, int priority, long us)
{
	if (fork())
		return;
	prctl(PR_SET_NAME, name);
	go_to(cpu);
	be(policy, priority);
	usleep(4000);
	dig(us);
	_exit(0);
}

static void reap(void)
{
	while (wait(0) > 0)
		;
}

/* Of the measured thread's own priority. */
static void peer(void)
{
	child("twin", 1, SCHED_RR, 50, 1100);
	reap();
}

/* Two, one after the other. */
static void convoy(void)
{
	child("tugboat", 1, SCHED_FIFO, 80, 500);
	child("barge", 1, SCHED_FIFO, 60, 500);
	reap();
}

/* One that comes from the other CPU while it computes. */
static void wander(void)
{
	prctl(PR_SET_NAME, "wanderer");
	go_to(0);
	be(SCHED_FIFO, 75);
	dig(400);
	go_to(1);
	dig(900);
	go_to(0);
	be(SCHED_OTHER, 0);
}

/* Below it, and on the other CPU: nobody is late. */
static void below(void)
{
	child("servant", 1, SCHED_FIFO, 40, 3000);
	reap();
}

static void beside(void)
{
	child("neighbour", 0, SCHED_FIFO, 99, 3000);
	reap();
}

/* Timers with descriptors, due together. */
#define CLOCKS 500
static int clocks[CLOCKS];

static void bring_clocks(void)
{
	struct rlimit many = { 4096, 4096 };

	setrlimit(RLIMIT_NOFILE, &many);
	for (int i = 0; i < CLOCKS; i++)
		clocks[i] = timerfd_create(CLOCK_MONOTONIC, 0);
}

static void strike(void)
{
	int64_t at = now_ns() + 8000000;
	struct itimerspec when = { { 0 } };

	prctl(PR_SET_NAME, "belfry");
	when.it_value.tv_sec = at / 1000000000;
	when.it_value.tv_nsec = at % 1000000000;
	go_to(1);
	for (int i = 0; i < CLOCKS; i++)
		timerfd_settime(clocks[i], TFD_TIMER_ABSTIME, &when, 0);
	while (now_ns() < at + 3000000)
		;
	go_to(0);
}

/* One packet for many sockets. */
#define EARS 700
static int mouth;
static struct sockaddr_in group;

static void bring_ears(void)
{
	struct rlimit many = { 4096, 4096 };
	struct ifreq lo = { .ifr_name = "lo" };
	struct ip_mreqn in;
	int one = 1;

	setrlimit(RLIMIT_NOFILE, &many);
	group.sin_family = AF_INET;
	group.sin_port = htons(4711);
	group.sin_addr.s_addr = inet_addr("239.1.2.3");
	memset(&in, 0, sizeof(in));
	in.imr_multiaddr = group.sin_addr;
	in.imr_ifindex = 1;
	mouth = socket(AF_INET, SOCK_DGRAM, 0);
	ioctl(mouth, SIOCGIFFLAGS, &lo);
	lo.ifr_flags |= IFF_UP | IFF_RUNNING;
	ioctl(mouth, SIOCSIFFLAGS, &lo);
	if (setsockopt(mouth, IPPROTO_IP, IP_MULTICAST_IF, &in, sizeof(in)))
		perror("IP_MULTICAST_IF");
	for (int i = 0; i < EARS; i++) {
		int ear = socket(AF_INET, SOCK_DGRAM, 0);

		setsockopt(ear, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(ear, (struct sockaddr *)&group, sizeof(group)) ||
		    setsockopt(ear, IPPROTO_IP, IP_ADD_MEMBERSHIP, &in, sizeof(in)))
			perror("ear");
	}
}

static void shout(void)
{
	prctl(PR_SET_NAME, "crier");
	go_to(1);
	if (sendto(mouth, "hear", 4, 0, (struct sockaddr *)&group, sizeof(group)) < 0)
		perror("sendto");
	go_to(0);
}

/* One signal for a group of processes. */
static pid_t crew;

static void bring_crew(void)
{
	sigset_t set;

	sigfillset(&set);
	for (int i = 0; i < 700; i++) {
		pid_t one = fork();

		if (!one) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			sigprocmask(SIG_BLOCK, &set, 0);
			for (;;)
				pause();
		}
		if (!crew)
			crew = one;
		setpgid(one, crew);
	}
}

static void whistle(void)
{
	static const int calls[] = { SIGUSR1, SIGUSR2, SIGHUP };
	static unsigned int number;

	prctl(PR_SET_NAME, "boatswain");
	go_to(1);
	kill(-crew, calls[number++ % 3]);
	go_to(0);
}

/* A process of many threads ends. */
static void *rest(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void disband(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (fork()) {
		reap();
		return;
	}
	prctl(PR_SET_NAME, "captain");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32768);
	for (int i = 0; i < 600; i++)
		if (pthread_create(&thread, &attr, rest, 0))
			perror("pthread_create");
	go_to(1);
	syscall(SYS_exit_group, 0);
}

/* A large set of System V semaphores. */
#define SEMS 32000
static int sems;
static unsigned short values[SEMS];

static void bring_semaphores(void)
{
	sems = semget(IPC_PRIVATE, SEMS, 0600);
	if (sems < 0)
		perror("semget");
}

static void set_all(void)
{
	prctl(PR_SET_NAME, "tallyman");
	go_to(1);
	if (semctl(sems, 0, SETALL, values))
		perror("semctl");
	go_to(0);
}

/* A file with many locked records. */
static int ledger;

static void bring_ledger(void)
{
	ledger = open("/tmp/ledger", O_RDWR | O_CREAT, 0600);
	if (ledger < 0)
		ledger = open("/dev/shm/ledger", O_RDWR | O_CREAT, 0600);
	if (ledger < 0)
		ledger = memfd_create("ledger", 0);
}

static void lock_records(void)
{
	struct flock one = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	prctl(PR_SET_NAME, "clerk");
	for (int i = 2000; i > 0; i--) {
		one.l_start = 2 * i;
		if (fcntl(ledger, F_SETLK, &one))
			perror("F_SETLK");
	}
	go_to(1);
	one.l_type = F_UNLCK;
	one.l_start = 0;
	one.l_len = 0;
	fcntl(ledger, F_SETLK, &one);
	go_to(0);
}

static void ask(void)
{
	prctl(PR_SET_NAME, "asker");
	go_to(1);
	usleep(1000);
	syscall(SYS_getppid);
	go_to(0);
}

static const struct {
	const char *name;
	void (*act)(void);
	void (*ready)(void);
} kinds[] = {
	{ "peer", peer },
	{ "convoy", convoy },
	{ "wander", wander },
	{ "below", below },
	{ "beside", beside },
	{ "clocks", strike, bring_clocks },
	{ "multicast", shout, bring_ears },
	{ "group", whistle, bring_crew },
	{ "threads", disband },
	{ "semaphores", set_all, bring_semaphores },
	{ "records", lock_records, bring_ledger },
	{ "ask", ask },
};

int main(int argc, char **argv)
{
	int64_t until = now_ns() + 300000000;
	unsigned int kind = 0;

	if (argc < 2)
		return 2;
	while (strcmp(kinds[kind].name, argv[1]))
		if (++kind == sizeof(kinds) / sizeof(kinds[0]))
			return 2;
	go_to(0);
	if (kinds[kind].ready)
		kinds[kind].ready();
	if (now_ns() < until)
		usleep((until - now_ns()) / 1000);
	for (int i = 0; i < 3; i++) {
		kinds[kind].act();
		usleep(40000);
	}
	pause();
	return 0;
}
