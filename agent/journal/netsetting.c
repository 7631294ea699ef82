/* SPDX-License-Identifier: MIT */
#include "journal/netsetting.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int netsetting_name(int index, char *name)
{
	return if_indextoname((unsigned int)index, name) ? 0 : -ENODEV;
}

static int ask_driver(int index, struct ethtool_coalesce *c)
{
	struct ifreq interface = { .ifr_data = (char *)c };
	int fd, err = netsetting_name(index, interface.ifr_name);

	if (err)
		return err;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = ioctl(fd, SIOCETHTOOL, &interface) < 0 ? -errno : 0;
	close(fd);
	return err;
}

int netsetting_read(int index, char *text, size_t size)
{
	struct ethtool_coalesce c = { .cmd = ETHTOOL_GCOALESCE };
	int err = ask_driver(index, &c);

	if (!err)
		snprintf(text, size, "%u.%u.%u", c.rx_coalesce_usecs,
			 c.rx_max_coalesced_frames, c.use_adaptive_rx_coalesce);
	return err;
}

int netsetting_write(int index, const char *text)
{
	struct ethtool_coalesce c = { .cmd = ETHTOOL_GCOALESCE };
	int err = ask_driver(index, &c);

	if (err)
		return err;
	if (sscanf(text, "%u.%u.%u", &c.rx_coalesce_usecs, &c.rx_max_coalesced_frames,
		   &c.use_adaptive_rx_coalesce) != 3)
		return -EINVAL;
	c.cmd = ETHTOOL_SCOALESCE;
	return ask_driver(index, &c);
}
