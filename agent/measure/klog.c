/* SPDX-License-Identifier: MIT */
#include "measure/klog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAX_MESSAGES 1000
#define RECORD_BYTES 8192 /* CONSOLE_EXT_LOG_MAX of kernel/printk */

void klog_open(struct klog *k)
{
	*k = (struct klog){ .state = "watched" };
	k->fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (k->fd < 0)
		k->state = errno == ENOENT ? "missing" : "denied";
	else
		lseek(k->fd, 0, SEEK_END);
}

void klog_close(struct klog *k)
{
	if (k->fd >= 0)
		close(k->fd);
}

/* A record is "priority,sequence,time_us,flags;text\n KEY=value\n..." */
static void emit_record(struct klog *k, struct emit *e, const char *record)
{
	const char *text = strchr(record, ';');
	unsigned int priority;
	long long time_us;

	if (!text || sscanf(record, "%u,%*u,%lld", &priority, &time_us) != 2)
		return;
	if (priority >> 3) /* the facility: a program wrote it, not the kernel */
		return;
	if (k->sent++ >= MAX_MESSAGES) {
		k->lost++;
		return;
	}
	text++;
	emit_begin(e, "kmsg");
	emit_int(e, "time_us", time_us);
	emit_int(e, "level", priority & 7);
	emit_bytes(e, "text", text, strcspn(text, "\n"));
	emit_end(e);
}

void klog_drain(struct klog *k, struct emit *e)
{
	char record[RECORD_BYTES + 1];

	while (k->fd >= 0) {
		ssize_t n = read(k->fd, record, RECORD_BYTES);

		if (n > 0) {
			record[n] = '\0';
			emit_record(k, e, record);
		} else if (n < 0 && errno == EPIPE) {
			k->lost++; /* overwritten before it was read; the next read goes on */
		} else if (n == 0 || errno != EINTR) {
			break;
		}
	}
}
