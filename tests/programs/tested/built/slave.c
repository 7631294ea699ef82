/*
 * An EtherCAT slave as a process, for a master at the other end of a pair of veth:
 *
 *	slave INTERFACE [dc]
 *
 * One byte of outputs and two of inputs, which count the frames and repeat the output;
 * registers, EEPROM, FMMUs and, with dc, a distributed clock, as far as SOEM asks.
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#define ETHERTYPE 0x88a4
#define PRIORITY 60 /* above the master's 40: a real slave answers on the wire */
#define NS_PER_S 1000000000ull

enum command {
	APRD = 1, APWR, APRW, FPRD, FPWR, FPRW, BRD, BWR, BRW, LRD, LWR, LRW, ARMW, FRMW,
};
enum place {
	STATION = 0x10,
	AL_CONTROL = 0x120,
	AL_STATUS = 0x130,
	EEPROM_CONTROL = 0x502,
	EEPROM_ADDRESS = 0x504,
	EEPROM_DATA = 0x508,
	FMMUS = 0x600,
	RECEIVED = 0x900,
	SYSTEM_TIME = 0x910,
	SYSTEM_OFFSET = 0x920,
	OUTPUTS = 0xf00,
	INPUTS = 0x1000,
};

static uint8_t reg[0x10000];
static const uint16_t eeprom[0x80] = {
	[0x08] = 0x0002, 0x0000, 0x3052, 0x07d8, /* an EL2008, which is a digital output */
	[0x40] = 40, 1, 0x0201, /* FMMU 0 for outputs, 1 for inputs */
	41, 8, OUTPUTS, 1, 0x0044, 0x0001, INPUTS, 2, 0x0000, 0x0001, /* two SMs */
	50, 8, 0x1a00, 0x0101, 0, 0, 0x6000, 1, 16 << 8, 0, /* 16 bits in SM 1 */
	51, 8, 0x1600, 0x0001, 0, 0, 0x7000, 1, 8 << 8, 0, /* 8 bits in SM 0 */
	0xffff,
};

static uint16_t get16(const uint8_t *at)
{
	return at[0] | at[1] << 8;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void get_ready(unsigned at, unsigned length)
{
	uint64_t offset, ns;

	if (at > SYSTEM_TIME || at + length <= SYSTEM_TIME)
		return;
	memcpy(&offset, reg + SYSTEM_OFFSET, sizeof(offset));
	ns = now_ns() + offset;
	memcpy(reg + SYSTEM_TIME, &ns, sizeof(ns));
}

static void written(unsigned at, unsigned length)
{
	unsigned word = get16(reg + EEPROM_ADDRESS);
	uint64_t ns;

	if (at == AL_CONTROL)
		reg[AL_STATUS] = reg[AL_CONTROL] & 0xf;
	if (at == EEPROM_CONTROL) {
		if (reg[at + 1] == 1 && length > 2 && word < 0x7c)
			memcpy(reg + EEPROM_DATA, eeprom + word, 8);
		reg[at] = 0x40; /* 8 bytes at a time, done */
		reg[at + 1] = 0;
	}
	if (at == RECEIVED) {
		ns = now_ns();
		memcpy(reg + RECEIVED, &ns, 4);
		memcpy(reg + RECEIVED + 0x18, &ns, 8);
	}
}

static unsigned take(uint8_t *data, unsigned at, unsigned length, bool read, bool write)
{
	uint8_t old[2048];

	if (at + length > sizeof(reg))
		return 0;
	if (read)
		get_ready(at, length);
	memcpy(old, reg + at, length);
	if (write && (at < RECEIVED + 0x10 || at >= SYSTEM_OFFSET)) {
		memcpy(reg + at, data, length);
		written(at, length);
	}
	if (read)
		memcpy(data, old, length);
	return read + write * (read ? 2 : 1);
}

static unsigned map(uint8_t *data, uint32_t from, unsigned length, bool read, bool write)
{
	bool has_read = false, has_written = false;

	for (const uint8_t *f = reg + FMMUS; f < reg + FMMUS + 48; f += 16) {
		uint32_t start = get16(f) | (uint32_t)get16(f + 2) << 16;
		unsigned bytes = get16(f + 4);
		uint8_t *own = reg + get16(f + 8);

		if (!f[12] || start < from || start + bytes > from + length)
			continue;
		if (f[11] & 2 && write) {
			memcpy(own, data + (start - from), bytes);
			has_written = true;
		} else if (f[11] & 1 && read) {
			reg[INPUTS]++;
			reg[INPUTS + 1] = reg[OUTPUTS];
			memcpy(data + (start - from), own, bytes);
			has_read = true;
		}
	}
	return has_read + has_written * (read ? 2 : 1);
}

static unsigned answer(uint8_t *datagram, unsigned length)
{
	enum command command = datagram[0];
	uint16_t address = get16(datagram + 2), at = get16(datagram + 4);
	uint8_t *data = datagram + 10;
	bool mine = address == get16(reg + STATION);

	if (command >= LRD && command <= LRW)
		return map(data, address | (uint32_t)at << 16, length, command != LWR,
			   command != LRD);
	if (command <= APRW || (command >= BRD && command <= BRW)) {
		mine = address == 0 || command >= BRD;
		address++;
		memcpy(datagram + 2, &address, 2);
	}
	if (command == FRMW || command == ARMW)
		return mine ? take(data, at, length, true, false) : 0;
	return mine ? take(data, at, length, command % 3 != 2, command % 3 != 1) : 0;
}

static void answer_all(uint8_t *frame, unsigned size)
{
	bool more = true;

	for (unsigned at = 16; more && at + 12 <= size;) {
		unsigned length = get16(frame + at + 6) & 0x7ff;
		uint8_t *counter = frame + at + 10 + length;
		uint16_t count;

		if (at + 12 + length > size)
			return;
		more = frame[at + 7] & 0x80;
		count = get16(counter) + answer(frame + at, length);
		memcpy(counter, &count, 2);
		at += 12 + length;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_ll on = { .sll_family = AF_PACKET, .sll_protocol = htons(ETHERTYPE) };
	struct sched_param param = { .sched_priority = PRIORITY };
	int wire = socket(PF_PACKET, SOCK_RAW, htons(ETHERTYPE));
	uint8_t frame[2048];

	on.sll_ifindex = argc > 1 ? (int)if_nametoindex(argv[1]) : 0;
	if (!on.sll_ifindex || bind(wire, (struct sockaddr *)&on, sizeof(on)) < 0) {
		perror("slave: INTERFACE [dc]");
		return 1;
	}
	reg[0x08] = argc > 2 ? 4 : 0; /* a clock */
	reg[0x111] = 0x02; /* one port with a neighbour */
	reg[AL_STATUS] = 1;
	mlockall(MCL_CURRENT | MCL_FUTURE);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
	for (;;) {
		ssize_t size = recv(wire, frame, sizeof(frame), 0);

		if (size <= 0)
			continue;
		answer_all(frame, size);
		send(wire, frame, size, 0);
	}
}
