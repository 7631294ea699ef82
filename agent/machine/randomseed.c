/* SPDX-License-Identifier: MIT */
#include "machine/randomseed.h"

#include <fcntl.h>
#include <linux/random.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WORDS 8 /* 256 bits: with as many the kernel's generator is ready */

void randomseed_give(int64_t number)
{
	/* struct rand_pool_info: how many bits it is worth, its bytes, and they */
	int seed[2 + WORDS] = { WORDS * 32, WORDS * sizeof(int) };
	int fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	for (int i = 0; i < WORDS; i++)
		seed[2 + i] = (int)number + i;
	ioctl(fd, RNDADDENTROPY, seed);
	close(fd);
}
