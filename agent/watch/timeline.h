/* SPDX-License-Identifier: MIT */
/*
 * timeline - what happened to one thread, in order of time: how long its faults, system
 * calls and preemptions lasted, where it slept, who woke it, and for which words of memory
 * it waited, which may be locks: who ended that, and what that one did meanwhile. Pure.
 *
 * Priorities are the kernel's: 0 to 98 for real-time ones, the lower the more urgent,
 * 100 and more for ordinary threads, -1 for deadline.
 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#define TIMELINE_NAME    16 /* of the kernel */
#define TIMELINE_WAKERS  16
#define TIMELINE_CALLS   48
#define TIMELINE_WORDS   16
#define TIMELINE_HISTORY 32
#define TIMELINE_LOWEST  100 /* priorities of real-time threads are below */

enum timeline_what {
	TIMELINE_OUT,    /* left the CPU; `other` got it */
	TIMELINE_IN,     /* got a CPU */
	TIMELINE_CALL,   /* entered the system call `call` */
	TIMELINE_RETURN, /* of it */
	TIMELINE_MARK, /* its next wait for a word is one for a lock: the word gets odd */
	TIMELINE_UNLOCK, /* wakes those that wait for `futex.word` */
	TIMELINE_FAULT,  /* entered a page fault */
	TIMELINE_MINOR,  /* the fault was minor, and is over */
	TIMELINE_MAJOR,
	TIMELINE_WAKE, /* made runnable by `other` */
	TIMELINE_LOST, /* records before it */
};

enum timeline_kind {
	TIMED_MINOR_FAULT,
	TIMED_MAJOR_FAULT,
	TIMED_MEMORY_CALL,
	TIMED_BLOCKING_CALL,
	TIMED_LOCK_WAIT,
	TIMED_PREEMPTED,
	TIMED_SET_ASIDE,
	TIMED_KERNEL_WAIT,
	TIMED_KINDS,
	TIMED_NOT = TIMED_KINDS,
};

enum timeline_context { IN_THREAD, IN_SOFTIRQ, IN_INTERRUPT };

struct timeline_party {
	int tid, priority;
	char name[TIMELINE_NAME];
};

/* A word of memory, and what a wait for it says: linux/futex.h. */
struct timeline_futex {
	uint64_t word;
	uint32_t value; /* that it is expected to have */
	uint8_t command;
};

/* What is known of a descriptor; neither of the first two: nothing. */
enum {
	NUMBER_NONBLOCKING = 1,
	NUMBER_WAITS = 2,
	NUMBER_OF_FILE = 4, /* it waits whatever its flags are */
};

/* Whether a wait ends at a time of a clock that others set: at the latest, or no sooner. */
enum { SETTABLE_NOT, SETTABLE_DEADLINE, SETTABLE_TIMER };

/* What a call does to numbers of descriptors; each plus 1, 0: none. */
struct timeline_numbers {
	int closes, closes_to; /* from the one to the other */
	int sets;              /* the flags of the file that this one is open for */
	int copies;            /* it returns another number of the same */
	bool makes;            /* it returns a new one */
	bool from_memory;      /* is how it sets flags; known of a sample alone */
	uint8_t is;            /* then */
};

struct timeline_record {
	int64_t t_ns;
	int tid; /* of the thread that it happened to */
	enum timeline_what what;
	bool runnable; /* of OUT: it could have gone on */
	bool held;     /* of OUT: it waits for the kernel, no signal ends that */
	int priority;  /* of the thread; of OUT and WAKE */
	struct timeline_party other;
	enum timeline_context context; /* of WAKE */
	bool by_agent;                 /* of WAKE: this agent ended a wait for itself */
	enum timeline_kind kind;       /* of CALL */
	const char *call;              /* its name, which stays; empty: unknown */
	int number;                    /* of CALL */
	uint64_t key;                  /* of an idle one: what it waits for */
	bool idle;                     /* it may be the wait for the next cycle */
	bool cannot_block;             /* as it is called */
	bool unsure;   /* unless what it points to says that it cannot */
	bool gone;     /* unless its descriptor does, which is closed or changed */
	bool by_flags; /* the flags of `fd` decide that, which can be changed */
	int fd;        /* plus 1; 0: none. Of RETURN: what it returned */
	struct timeline_numbers numbers;
	struct timeline_futex futex; /* of UNLOCK, and of CALL that is a lock wait */
	uint8_t settable;            /* of CALL */
};

/* How often something was seen from begin to end, and how long it lasted. */
struct timed {
	int64_t count, total_ns, worst_ns, worst_at_ns;
	char worst_in[TIMELINE_NAME + 8]; /* the system call, or who got the CPU */
};

/* Waits until a time of a clock that others set. */
struct timeline_settable {
	int64_t waits, expired; /* of these: that time ended it */
};

/* One system call, or one of its first arguments if it may be the wait for a cycle. */
struct timeline_call {
	const char *name;
	int number;
	enum timeline_kind kind;
	bool idle;
	uint64_t key;
	unsigned int sent;   /* stacks of it */
	struct timed unsure; /* until timeline_settle(): what they point to decides */
	unsigned int could, could_not; /* block, of those whose memory was copied */
	int64_t harmless;              /* times that it could not block, and did not */
	int64_t undecided;        /* that it did not, with a descriptor that is gone */
	struct timed times;       /* all others */
	struct timed slept, held; /* in it; `worst_in`: who ended that */
	struct timeline_settable settable;
};

/* What a thread did for a time. */
struct timeline_doing {
	bool known;
	int64_t ran_ns, aside_ns, slept_ns;
	char slept_in[TIMELINE_NAME + 8]; /* the last system call */
};

/* The waits for one word. */
struct timeline_word {
	struct timeline_futex futex; /* of the first */
	bool values_differ;
	int64_t wakes; /* of the same word by this thread */
	int64_t looks,
		free; /* while it did not wait for it; of these: the word was 1 */
	struct timed times;
	struct timeline_settable settable;
	bool has_waker; /* of the longest */
	struct timeline_party waker;
	struct timeline_doing meanwhile; /* of the waker, in the longest */
};

struct timeline_waker {
	struct timeline_party by;
	bool softirq;
	uint64_t word; /* that it waited for; 0: none */
	int64_t count;
};

/* A thread changed the word that this one waited for, and was kept from its CPU before. */
struct timeline_inversion {
	struct timeline_party owner, by;
	uint64_t word;
	struct timed waited;
};

/* Off the CPU. */
struct timeline_interval {
	int64_t from_ns, to_ns; /* 0: still */
	bool runnable;
	struct timeline_party by;
	const char *call; /* that it slept in; NULL: none that is timed */
};

struct timeline {
	int priority; /* as it was last seen */
	bool known;   /* the priority */
	bool is_out, runnable, held;
	int64_t sees_wakers_ns; /* its wake-ups by threads are looked at since; 0: not */
	int64_t out_ns, woken_ns; /* 0: not yet */
	char woken_by[TIMELINE_NAME + 8];
	bool woken_by_agent;
	int64_t call_ns, fault_ns; /* 0: is in none */
	bool call_slept;
	struct timeline_record in; /* the call */
	bool marked;
	bool has_ender; /* of the wait for a word: who ended it */
	struct timeline_party ender;
	struct timeline_doing ender_did;
	struct timeline_interval off[TIMELINE_HISTORY];
	unsigned int offs; /* ever */
	struct timed timed[TIMED_KINDS];
	struct timeline_call call[TIMELINE_CALLS];
	unsigned int calls;
	int64_t other_calls;        /* that had no room */
	int64_t slept_elsewhere_ns; /* in no call that is timed: the sleep of a cycle */
	struct timeline_word word[TIMELINE_WORDS];
	unsigned int words;
	int64_t other_words;
	struct timeline_waker waker[TIMELINE_WAKERS];
	unsigned int wakers;
	int64_t other_wakers; /* that had no room */
	struct timeline_inversion inversion[TIMELINE_WAKERS];
	unsigned int inversions;
	int64_t other_inversions;
};

/* `waker` is the timeline of who woke it, if that is a thread of this process. */
void timeline_add(struct timeline *t, const struct timeline_record *r,
		  const struct timeline *waker);

/* Judges the calls whose memory was not copied by those whose was. */
void timeline_settle(struct timeline_call *c);

/* The row of a call, made if it is the first; NULL: there is no room. */
struct timeline_call *timeline_row(struct timeline *t, const struct timeline_record *r);

extern const char *const timeline_kind_names[TIMED_KINDS];

#endif
