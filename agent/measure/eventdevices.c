/* SPDX-License-Identifier: MIT */
/* Events of devices: frames of a CAN bus, and the interrupt of a device by UIO. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/can.h>
#include <linux/can/raw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/slurp.h"
#include "measure/eventkind.h"
#include "measure/netpair.h"
#include "thread/rawcall.h"

/* --- CAN: a frame of 8 bytes ------------------------------------------------------- */

#define CAN_ID_OURS 0x123 /* of the first way; each has its own */
#define CAN_BITRATE 500000

static int bind_can(int fd, unsigned int interface)
{
	const struct sockaddr_can at = { .can_family = AF_CAN,
					 .can_ifindex = (int)interface };

	return bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
}

/* Frames of others do not wake the receiver, and the sender has none to read. */
static int filter_can(const struct event_ends *e)
{
	const struct can_filter ours = { .can_id = e->owner,
					 .can_mask = CAN_EFF_FLAG | CAN_RTR_FLAG |
						     CAN_SFF_MASK };

	if (setsockopt(e->receive_fd, SOL_CAN_RAW, CAN_RAW_FILTER, &ours,
		       sizeof(ours)) < 0 ||
	    setsockopt(e->send_fd, SOL_CAN_RAW, CAN_RAW_FILTER, NULL, 0) < 0 ||
	    fcntl(e->send_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static int open_can(struct event_ends *e, const struct event_choice *choice,
		    struct event_refusal *refusal)
{
	static uint32_t ways;
	const struct netpair_request wanted = { .family = PF_CAN,
						.type = SOCK_RAW,
						.protocol = CAN_RAW,
						.from = choice->from,
						.to = choice->to,
						.bitrate = CAN_BITRATE };
	struct netpair pair;
	char what[EVENT_WHAT];
	int err;

	e->owner = CAN_ID_OURS + ways++;
	event_say_pair(choice, "with vcan", what);
	err = netpair_make(&pair, &wanted);
	e->send_fd = pair.send_fd;
	e->receive_fd = pair.receive_fd;
	if (!err) {
		snprintf(what, sizeof(what), "open CAN sockets");
		err = filter_can(e);
	}
	if (!err)
		err = bind_can(e->send_fd, pair.send_index);
	if (!err)
		err = bind_can(e->receive_fd, pair.receive_index);
	if (err) {
		event_refuse_pair(refusal, choice, what, err);
		return err;
	}
	return event_try_first(e, &event_kind_can, "CAN frame", refusal);
}

static int send_can(struct event_ends *e, uint32_t number)
{
	struct can_frame frame = { .can_id = e->owner, .len = CAN_MAX_DLEN };
	long done;

	memcpy(frame.data, &number, sizeof(number));
	done = rawcall4(SYS_write, e->send_fd, (long)&frame,
			(const void *)sizeof(frame), NULL);
	return done < 0 ? (int)done : 0;
}

static int64_t receive_can(struct event_ends *e)
{
	struct can_frame frame;
	uint32_t number;
	long done = rawcall4(SYS_read, e->receive_fd, (long)&frame,
			     (const void *)sizeof(frame), NULL);

	if (done < 0)
		return done;
	if (done != sizeof(frame) || frame.len != CAN_MAX_DLEN)
		return -EPIPE;
	memcpy(&number, frame.data, sizeof(number));
	return (int64_t)number;
}

const struct event_kind event_kind_can = { "can",       open_can, send_can,
					   receive_can, NULL,     true };

/* --- UIO: the interrupt that a store to QEMU's device "edu" raises ------------------- */

#define UIO "/sys/class/uio"

#define EDU "0x11e8" /* of vendor 0x1234: docs/specs/edu.rst of QEMU */

/* Registers, by number: one that keeps a number, inverted, and what tells, raises and
 * lowers its interrupt. */
#define EDU_NUMBER (0x04 / 4)
#define EDU_STATUS (0x24 / 4)
#define EDU_RAISE  (0x60 / 4)
#define EDU_LOWER  (0x64 / 4)

#define PCI_COMMAND      4
#define PCI_INTX_DISABLE 0x400

/* The least number of its uio devices from one on, or -errno. */
static int find_edu(int from)
{
	DIR *dir = opendir(UIO);
	struct dirent *entry;
	int found = -ENODEV, number;

	while (dir && (entry = readdir(dir))) {
		char path[NAME_MAX + 64], device[16] = "";

		if (strncmp(entry->d_name, "uio", 3) != 0)
			continue;
		snprintf(path, sizeof(path), UIO "/%s/device/device", entry->d_name);
		if (slurp(path, device, sizeof(device)) > 0 &&
		    strncmp(device, EDU, strlen(EDU)) == 0) {
			number = atoi(entry->d_name + 3);
			if (number >= from && (found < 0 || number < found))
				found = number;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

static int open_file(int number, const char *name, int flags)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), UIO "/uio%d/device/%s", number, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int map_registers(struct event_device *device, int number)
{
	int fd = open_file(number, "resource0", O_RDWR | O_SYNC);
	void *mapped;

	if (fd < 0)
		return fd;
	mapped = mmap(NULL, EVENT_REGISTERS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (mapped == MAP_FAILED)
		return -errno;
	device->registers = mapped;
	return 0;
}

static int open_config(struct event_device *device, int number)
{
	device->config_fd = open_file(number, "config", O_RDWR);
	if (device->config_fd < 0)
		return device->config_fd;
	if (pread(device->config_fd, &device->command, sizeof(device->command),
		  PCI_COMMAND) != sizeof(device->command))
		return -EIO;
	device->command &= (uint16_t)~PCI_INTX_DISABLE;
	return 0;
}

static int let_interrupt(struct event_ends *e)
{
	struct event_device *d = &e->device;

	d->registers[EDU_LOWER] = d->registers[EDU_STATUS];
	return pwrite(d->config_fd, &d->command, sizeof(d->command), PCI_COMMAND) < 0
		       ? -errno
		       : 0;
}

static int open_uio(struct event_ends *e, const struct event_choice *choice,
		    struct event_refusal *refusal)
{
	static int next; /* each way has a device of its own */
	int from = next, number = find_edu(from), err = number < 0 ? number : 0;
	char path[32];

	(void)choice;
	next = number + 1;
	if (!err) {
		snprintf(path, sizeof(path), "/dev/uio%d", number);
		e->receive_fd = open(path, O_RDWR | O_CLOEXEC);
		err = e->receive_fd < 0 ? -errno : map_registers(&e->device, number);
	}
	if (!err)
		err = open_config(&e->device, number);
	if (!err)
		err = let_interrupt(e);
	if (err) {
		event_refuse(refusal, "open a device edu of QEMU by uio_pci_generic",
			     err);
		if (err == -ENODEV)
			refusal->remedy =
				from ? "each CPU needs such a device: name fewer with "
				       "--cpus, or choose another --event"
				     : "measure on -t virtual:pc, or choose another "
				       "--event";
		return err;
	}
	return event_try_first(e, &event_kind_uio, "interrupt", refusal);
}

/* Two stores, no system call. */
static int send_uio(struct event_ends *e, uint32_t number)
{
	e->device.registers[EDU_NUMBER] = number;
	e->device.registers[EDU_RAISE] = 1;
	return 0;
}

/* Lets it interrupt again, and waits: of events whose interrupts became one, the last. */
static int64_t receive_uio(struct event_ends *e)
{
	uint32_t count;
	int err = let_interrupt(e);
	long done;

	if (err)
		return err;
	done = rawcall4(SYS_read, e->receive_fd, (long)&count,
			(const void *)sizeof(count), NULL);
	return done < 0 ? done : (int64_t)(uint32_t)~e->device.registers[EDU_NUMBER];
}

const struct event_kind event_kind_uio = { "uio",       open_uio, send_uio,
					   receive_uio, NULL,     false };
