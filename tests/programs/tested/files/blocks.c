/* SPDX-License-Identifier: MIT */
/* In every twentieth period a client of JACK sleeps where it asks for its buffer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

void *jack_port_get_buffer(void *port, unsigned int frames)
{
	static void *(*real)(void *, unsigned int);
	static int times;

	if (!real)
		real = dlsym(RTLD_NEXT, "jack_port_get_buffer");
	if (++times % 20 == 0)
		usleep(300);
	return real(port, frames);
}
