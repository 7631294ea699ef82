/* SPDX-License-Identifier: MIT */
/*
 * eventkind - the kinds of events that a thread can be woken by, beside its own timer.
 *
 * A kind is a way from one thread to another: what the stimulus thread calls to send an
 * event, and what the measuring thread waits in. Both make one system call for each
 * event, at most, that of the kind; the C library's part of sem and cond is musl's.
 */
#ifndef EVENTKIND_H
#define EVENTKIND_H

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "measure/xdpsocket.h"

#define EVENT_NAME_MAX  16 /* IFNAMSIZ */
#define EVENT_WHY       160
#define EVENT_WHAT      96
#define EVENT_SERIAL    127  /* on their way: a byte tells no more apart */
#define EVENT_REGISTERS 4096 /* bytes of a device that are mapped */

struct journal;

#define EVENT_CPU_OTHER (-1) /* the next CPU that the process may use */
#define EVENT_CPU_SAME  (-2)

/* What --event asks for. */
struct event_choice {
	const struct event_kind *kind; /* NULL: timer, poll or a tracer */
	bool polls;                    /* poll: it never sleeps */
	bool timerlat;                 /* the tracer of that name */
	struct {
		bool asked;                     /* for the tracer hwlat */
		int64_t threshold_us, width_us; /* 0: half of the interval */
	} hwlat;
	int cpu;                   /* of the stimulus, or one of the above */
	unsigned int priority;     /* of the stimulus; 0: one below the receiver's */
	char from[EVENT_NAME_MAX]; /* what a kind goes between; empty: its own pair */
	char to[EVENT_NAME_MAX];
};

/* A device whose registers are mapped. */
struct event_device {
	volatile uint32_t *registers; /* NULL: none */
	int config_fd;                /* its configuration space; -1: none */
	uint16_t command; /* what is written there to let it interrupt again */
};

/* The two ends of a way: each kind uses what it needs. */
struct event_ends {
	int send_fd, receive_fd; /* -1: none */
	pid_t receiver;          /* its thread, before the first event */
	siginfo_t info;          /* of signal, filled but for the number */
	uint32_t owner; /* of raw and xdp: in each of its frames, and in no other's */
	struct event_device device; /* of uio */
	struct xdp_socket xdp;      /* of xdp: what belongs to its receive_fd */
	struct journal *journal;    /* for what a kind sets on the machine */

	/* by the receiver: of kinds whose events have no number, or a part of it */
	_Alignas(64) uint32_t received;

	_Alignas(64) _Atomic uint32_t word; /* futex */
	sem_t sem;

	/* cond */
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint32_t posted;
	bool closed;
};

/* What a kind that cannot be opened says. */
struct event_refusal {
	const char *cause; /* a word of the contract */
	char why[EVENT_WHY];
	const char *remedy;
};

struct event_kind {
	const char *name;
	/* Makes both ends. 0 or -errno, then *refusal is filled. */
	int (*open)(struct event_ends *e, const struct event_choice *choice,
		    struct event_refusal *refusal);
	/* The stimulus. 0, -EAGAIN if the way is full, or -errno. */
	int (*send)(struct event_ends *e, uint32_t number);
	/* Waits; returns the number of the event, or -errno: -EINTR after SIGUSR1. */
	int64_t (*receive)(struct event_ends *e);
	/* Ends a wait that no signal ends; NULL: there is none. */
	void (*close_wait)(struct event_ends *e);
	bool between; /* whether from= and to= may say what it goes between */
};

/* Parses NAME[:OPTION=VALUE]... 0, or -EINVAL. */
int event_parse(const char *text, struct event_choice *out);

/* Fits what was asked for to the interval of the run. NULL, or in words why not. */
const char *event_fit(struct event_choice *choice, int64_t interval_ns);

/* Whether a thread is woken by its own timer. */
static inline bool event_is_timer(const struct event_choice *choice)
{
	return !choice->kind && !choice->polls && !choice->hwlat.asked &&
	       !choice->timerlat;
}

/* The name of what wakes the threads: timer, or that of the kind. */
const char *event_name(const struct event_choice *choice);

/* Closes what open has opened, also if it has failed half-way. */
void event_ends_init(struct event_ends *e);
void event_ends_close(struct event_ends *e);

int64_t event_receive_number(struct event_ends *e);
int event_send_number(struct event_ends *e, uint32_t number);
void event_refuse(struct event_refusal *refusal, const char *what, int err);

/* Names what a kind of the network makes, or takes, before it can open its sockets. */
void event_say_pair(const struct event_choice *choice, const char *made,
		    char what[EVENT_WHAT]);

/* event_refuse(), with what to do about an interface. */
void event_refuse_pair(struct event_refusal *refusal, const struct event_choice *choice,
		       const char *what, int err);

/*
 * Sends and waits for a first event: it takes slow paths, and shows whether any comes
 * through at all. Again and again for ten seconds: the kernel drops what is sent before
 * it has noticed that a link is up. What comes late is no event of the run. what names
 * the event in words. 0, or -errno and *refusal is filled.
 */
int event_try_first(struct event_ends *e, const struct event_kind *kind,
		    const char *what, struct event_refusal *refusal);

extern const struct event_kind event_kind_pty, event_kind_serial, event_kind_udp,
	event_kind_raw, event_kind_xdp, event_kind_can, event_kind_uio;

#endif
