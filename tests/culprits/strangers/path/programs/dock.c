// SPDX-License-Identifier: MIT
/*
 * dock - sets what ethtool, chrt and taskset set, and floods a line.
 *
 *   dock quiet SENDER RECEIVER      no moderation; their lines on CPU 0 and CPU 1
 *   dock coalesce INTERFACE US      rx-usecs
 *   dock steer LINE MASK            the lines of /proc/interrupts whose name begins so
 *   dock priority PREFIX PART FIFO  of threads by the begin and a part of their names
 *   dock cpu PREFIX MASK            the CPUs of threads
 *   dock flood SENDER RECEIVER MS INSTRUCTIONS
 *                                   frames of another type, and one who filters them
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <linux/ethtool.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TYPE  0x88b6
#define MOST  3000 /* instructions of the filter */
#define BATCH 64

static int coalesce(const char *interface, unsigned int us)
{
	struct ethtool_coalesce set = { .cmd = ETHTOOL_GCOALESCE };
	struct ifreq request = { .ifr_data = (char *)&set };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
	if (ioctl(fd, SIOCETHTOOL, &request))
		return 1;
	set.cmd = ETHTOOL_SCOALESCE;
	set.rx_coalesce_usecs = us;
	return ioctl(fd, SIOCETHTOOL, &request) ? 1 : 0;
}

static int steer(const char *line, const char *mask)
{
	FILE *table = fopen("/proc/interrupts", "r");
	char row[512], path[64];
	int found = 1;

	while (table && fgets(row, sizeof(row), table)) {
		char *name = strrchr(row, ' ');
		FILE *file;

		if (!name || strncmp(name + 1, line, strlen(line)))
			continue;
		snprintf(path, sizeof(path), "/proc/irq/%d/smp_affinity", atoi(row));
		file = fopen(path, "w");
		if (file) {
			fputs(mask, file);
			fclose(file);
			found = 0;
		}
	}
	return found;
}

/* Does to each thread of a name what is asked; kernel threads are their processes. */
static int each_thread(const char *prefix, const char *part, int priority,
		       unsigned long mask)
{
	DIR *all = opendir("/proc");
	struct dirent *one;

	while (all && (one = readdir(all))) {
		struct sched_param p = { .sched_priority = priority };
		char path[300], name[64] = "";
		FILE *file;
		cpu_set_t set;

		snprintf(path, sizeof(path), "/proc/%s/comm", one->d_name);
		file = atoi(one->d_name) ? fopen(path, "r") : NULL;
		if (!file)
			continue;
		if (!fgets(name, sizeof(name), file))
			name[0] = 0;
		fclose(file);
		if (strncmp(name, prefix, strlen(prefix)) || !strstr(name, part))
			continue;
		if (priority)
			sched_setscheduler(atoi(one->d_name), SCHED_FIFO, &p);
		CPU_ZERO(&set);
		for (int i = 0; i < 8; i++)
			if (mask & (1ul << i))
				CPU_SET(i, &set);
		if (mask)
			sched_setaffinity(atoi(one->d_name), sizeof(set), &set);
	}
	return 0;
}

static int open_on(const char *interface)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(TYPE),
		.sll_ifindex = (int)if_nametoindex(interface),
		.sll_halen = 6,
		.sll_addr = { 0x52, 0x54, 0, 0, 0, 2 },
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	return bind(fd, (struct sockaddr *)&at, sizeof(at)) ? -1 : fd;
}

static int flood(const char *sender, const char *receiver, long ms, int length)
{
	static struct sock_filter filter[MOST + 1];
	struct sock_fprog program = { (unsigned short)(length + 1), filter };
	unsigned char frame[60] = { 0x52, 0x54, 0, 0, 0, 2,         0x52,
				    0x54, 0,    0, 0, 1, TYPE >> 8, TYPE & 255 };
	struct iovec piece = { frame, sizeof(frame) };
	struct mmsghdr batch[BATCH];
	int from = open_on(sender), to = open_on(receiver);
	struct timespec begin, now;

	for (int i = 0; i < length; i++)
		filter[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 3);
	filter[length] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	if (from < 0 || to < 0 || length > MOST ||
	    setsockopt(to, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		return 1;
	memset(batch, 0, sizeof(batch));
	for (int i = 0; i < BATCH; i++) {
		batch[i].msg_hdr.msg_iov = &piece;
		batch[i].msg_hdr.msg_iovlen = 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		sendmmsg(from, batch, BATCH, MSG_DONTWAIT);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 +
			 (now.tv_nsec - begin.tv_nsec) / 1000000 <
		 ms);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "quiet"))
		return coalesce(argv[2], 0) | coalesce(argv[3], 0) |
		       steer(argv[2], "1") | steer(argv[3], "2");
	if (argc == 4 && !strcmp(argv[1], "coalesce"))
		return coalesce(argv[2], (unsigned int)atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "steer"))
		return steer(argv[2], argv[3]);
	if (argc == 5 && !strcmp(argv[1], "priority"))
		return each_thread(argv[2], argv[3], atoi(argv[4]), 0);
	if (argc == 4 && !strcmp(argv[1], "cpu"))
		return each_thread(argv[2], "", 0, strtoul(argv[3], NULL, 16));
	if (argc == 6 && !strcmp(argv[1], "flood"))
		return flood(argv[2], argv[3], atol(argv[4]), atoi(argv[5]));
	return 2;
}
