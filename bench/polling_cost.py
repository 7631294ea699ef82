"""
What watching a program costs each poll() of it: rtscope app check, on and off.

A thread of FIFO 97 polls a descriptor that is ready, asks for its parent's number,
which no watch counts, and waits for the rest of a millisecond: in turns by ppoll() and
by clock_nanosleep(). Each block runs it alone, under what watches calls and switches,
under the recording of its cycles, and under both; in random order. Printed are the
medians of the differences within the blocks, from least to most: ns of a call, and how
late a wait ends. Arguments: how many blocks, and another agent to measure.
"""

import random
import subprocess
import sys
from pathlib import Path

from rtscope.machine.target import agent_file
from watching_cost import BLOCKS, CYCLES, VARIANTS, WATCH, run

BUILD = Path(__file__).parent.parent / "build" / "bench"
NAMES = {"off": "off", "watch": "tiers 0-2", "cycles": "cycles", "both": "both"}
FIGURES = ("poll, ready", "getppid", "ppoll, late by", "nanosleep, late by")

POLLS = r"""
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALLS  20
#define MS     1000000L
#define SECOND 1000000000L

static struct pollfd ready = { .events = POLLIN };

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static long polls_ns(void)
{
	const long begin_ns = now_ns();

	for (int i = 0; i < CALLS; i++)
		poll(&ready, 1, 1000);
	return now_ns() - begin_ns;
}

static long parents_ns(void)
{
	const long begin_ns = now_ns();

	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	return now_ns() - begin_ns;
}

static int least_first(const void *a, const void *b)
{
	const long one = *(const long *)a, other = *(const long *)b;

	return (one > other) - (one < other);
}

static long median(long *of, long count)
{
	qsort(of, count, sizeof(*of), least_first);
	return of[count / 2];
}

int main(int argc, char **argv)
{
	const struct sched_param priority = { .sched_priority = 97 };
	const long skip = atol(argv[1]), count = atol(argv[2]);
	long *poll_ns = calloc(count, sizeof(long));
	long *call_ns = calloc(count, sizeof(long));
	long *late_ns[2] = { calloc(count, sizeof(long)), calloc(count, sizeof(long)) };
	long due_ns;

	ready.fd = eventfd(1, 0);
	mlockall(MCL_CURRENT | MCL_FUTURE);
	if (argc < 3 || sched_setscheduler(0, SCHED_FIFO, &priority))
		return 1;
	due_ns = now_ns() + MS;
	for (long i = -skip; i < count; i++, due_ns += MS) {
		const long rest_ns = due_ns - now_ns();
		const struct timespec rest = { 0, rest_ns > 0 ? rest_ns : 0 };
		const struct timespec due = { due_ns / SECOND, due_ns % SECOND };
		const long at = i < 0 ? 0 : i;

		if (at % 2)
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		else
			ppoll(NULL, 0, &rest, NULL);
		late_ns[at % 2][at / 2] = now_ns() - due_ns;
		poll_ns[at] = polls_ns();
		call_ns[at] = parents_ns();
	}
	printf("%g %g", (double)median(poll_ns, count) / CALLS,
		(double)median(call_ns, count) / CALLS);
	printf(" %ld %ld\n", median(late_ns[0], count / 2), median(late_ns[1], count / 2));
}
"""


def built() -> Path:
    """Compile the program."""
    BUILD.mkdir(parents=True, exist_ok=True)
    source, out = BUILD / "polls.c", BUILD / "polls"
    source.write_text(POLLS)
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-O2", "-o", out, source], check=True)
    return out


def main() -> None:
    """Alternate the variants, and print a table in ns; takes [BLOCKS [AGENT]]."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    agent = Path(sys.argv[2]) if len(sys.argv) > 2 else agent_file("x86_64")
    program = built()
    order = random.Random(1)
    watched = {**VARIANTS, "both": frozenset({WATCH, CYCLES})}
    runs: dict[str, list[tuple[float, ...]]] = {name: [] for name in NAMES}
    for _ in range(blocks):
        drawn = list(NAMES)
        order.shuffle(drawn)
        for name in drawn:
            parts = watched[NAMES[name]]
            runs[name].append(run(program, agent, parts, []))
    print("| figure, ns | off | watched by | more | least to most |")
    print("|---|---:|---|---:|---:|")
    for at, figure in enumerate(FIGURES):
        off = sorted(one[at] for one in runs["off"])[blocks // 2]
        for name in list(NAMES)[1:]:
            pairs = zip(runs["off"], runs[name], strict=True)
            more = sorted(b[at] - a[at] for a, b in pairs)
            print(
                f"| {figure} | {off:.0f} | {name} | {more[blocks // 2]:+.0f} | "
                f"{more[0]:+.0f} to {more[-1]:+.0f} |"
            )


if __name__ == "__main__":
    main()
