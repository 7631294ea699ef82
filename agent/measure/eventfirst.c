/* SPDX-License-Identifier: MIT */
/* What kinds through a device have in common before their first event. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "measure/eventkind.h"
#include "thread/clock.h"

#define FIRST_WAIT_MS 20
#define FIRST_ALL_NS  INT64_C(10000000000) /* a busy machine notices a link late */

/* Takes what has come, if anything does. 1, 0 if nothing came, or -errno. */
static int take_in(struct event_ends *e, const struct event_kind *kind)
{
	struct pollfd in = { .fd = e->receive_fd, .events = POLLIN };
	int64_t received;

	if (poll(&in, 1, FIRST_WAIT_MS) != 1)
		return 0;
	received = kind->receive(e); /* of an interface that is down: its error */
	return received < 0 ? (int)received : 1;
}

static int refuse_first(struct event_refusal *refusal, const char *verb,
			const char *what, int err)
{
	char tried[EVENT_WHAT];

	snprintf(tried, sizeof(tried), "%s a first %s", verb, what);
	event_refuse(refusal, tried, err);
	if (err == -ENETDOWN)
		refusal->remedy = "bring both interfaces up (ip link set NAME up), or "
				  "choose another --event";
	return err;
}

int event_try_first(struct event_ends *e, const struct event_kind *kind,
		    const char *what, struct event_refusal *refusal)
{
	int64_t end_ns = clock_now_ns() + FIRST_ALL_NS;
	int sent, came;

	do {
		sent = kind->send(e, 0);
		came = take_in(e, kind);
	} while (!came && sent != -ENETDOWN && clock_now_ns() < end_ns);
	if (came < 0)
		return refuse_first(refusal, "receive", what, came);
	if (came) {
		while (take_in(e, kind) > 0)
			;
		return 0;
	}
	if (sent)
		return refuse_first(refusal, "send", what, sent);
	refusal->cause = "event";
	snprintf(refusal->why, sizeof(refusal->why),
		 "no %s comes through within ten seconds", what);
	refusal->remedy = "look at cable, peer and packet filter, or choose another "
			  "--event";
	return -ETIMEDOUT;
}

void event_say_pair(const struct event_choice *choice, const char *made,
		    char what[EVENT_WHAT])
{
	if (*choice->from)
		snprintf(what, EVENT_WHAT, "take %s and %s into network namespaces",
			 choice->from, choice->to);
	else
		snprintf(what, EVENT_WHAT, "make network namespaces %s", made);
}

void event_refuse_pair(struct event_refusal *refusal, const struct event_choice *choice,
		       const char *what, int err)
{
	event_refuse(refusal, what, err);
	if (err == -EPERM)
		refusal->remedy = "run through sudo (CAP_NET_ADMIN and CAP_SYS_ADMIN), "
				  "in a container add --cap-add NET_ADMIN --cap-add "
				  "SYS_ADMIN";
	else if (err == -EBUSY)
		refusal->remedy = "name two interfaces that nobody uses: down (ip link "
				  "set NAME down) and without an address";
	else if (err == -EOPNOTSUPP && *choice->from)
		refusal->remedy = "name interfaces of devices: the kernel removes a "
				  "virtual one with the namespace that it is in";
	else if (err == -EOPNOTSUPP || err == -EAFNOSUPPORT)
		refusal->remedy = "load its modules (modprobe veth, or vcan and "
				  "can-raw), or choose another --event";
	else if (err == -ENODEV)
		refusal->remedy = "name two interfaces that there are (ip link)";
}
