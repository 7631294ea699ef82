"""
What an event costs the measuring thread in user-space instructions.

callgrind counts the receiving loop of the agent alone; the difference of two run
lengths leaves out start and end. Beside it the bare loop of the same calls (wait, read
the clock), so that it shows what number, histogram, sums and worst cost.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from sampling_cost import AGENT, BUILD, INTERVAL_NS, LENGTHS, compile_with_symbols

KINDS = ("futex", "eventfd", "pipe", "signal", "mq", "sem", "cond", "pty")

MOST_MORE = 60
"""
Instructions of the agent above the bare loop. Of a timer they are 41: an event adds its
number, its place in the ring of times, and the two atomics that hand it over.
"""

BARE = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include "measure/eventkind.h"
#include "thread/clock.h"

static struct event_choice choice;
static struct event_ends ends;
static long count;
static volatile pid_t receiver;

static void __attribute__((noinline)) bare_loop(void)
{
	int64_t sum = 0;

	for (long i = 0; i < count; i++) {
		choice.kind->receive(&ends);
		sum += clock_now_ns();
	}
	exit(sum == 0);
}

static void *send(void *arg)
{
	struct timespec ms = { .tv_nsec = 1000000 };

	(void)arg;
	nanosleep(&ms, NULL);
	for (long i = 0; i < count; i++) {
		choice.kind->send(&ends, (uint32_t)i);
		nanosleep(&ms, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct event_refusal refusal;
	pthread_t thread;
	sigset_t all;

	(void)argc;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	count = atol(argv[2]);
	event_ends_init(&ends);
	if (event_parse(argv[1], &choice) || choice.kind->open(&ends, &choice, &refusal))
		return 3;
	ends.receiver = (pid_t)syscall(SYS_gettid);
	pthread_create(&thread, NULL, send, NULL);
	bare_loop();
}
"""


def counted(argv: list[str], function: str, directory: Path) -> int:
    """Return the instructions executed in a function and what it calls."""
    done = subprocess.run(
        [
            *("valgrind", "--tool=callgrind", f"--toggle-collect={function}"),
            f"--callgrind-out-file={directory}/out",
            *argv,
        ],
        check=True,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    total = re.search(r"Collected : (\d+)", done.stderr)
    assert total, done.stderr
    return int(total[1])


def per_event(argv: dict[int, list[str]], function: str, directory: Path) -> float:
    """Return the instructions of one event, from two lengths."""
    short, long = (counted(argv[n], function, directory) for n in LENGTHS)
    return (long - short) / (LENGTHS[1] - LENGTHS[0])


def main() -> int:
    """Print a line for each kind; 1 if one costs more than it may."""
    BUILD.mkdir(parents=True, exist_ok=True)
    files = [*AGENT.glob("*.c"), *AGENT.glob("*/*.c")]
    sources = sorted(file for file in files if file.parent.name != "tests")
    agent = compile_with_symbols(sources, BUILD / "rtscope-agent")
    loop = BUILD / "bare_event.c"
    loop.write_text(BARE)
    others = [file for file in sources if file.name != "main.c"]
    bare = compile_with_symbols([loop, *others], BUILD / "bare_event")
    status = 0
    print("event        bare   agent    more")
    with tempfile.TemporaryDirectory() as name:
        for kind in sys.argv[1:] or KINDS:
            measure = {
                n: [
                    *(str(agent), "measure", "--policy", "other", "--cpus", "1"),
                    *("--event", kind, "--interval-ns", str(INTERVAL_NS)),
                    *("--duration-ns", str(n * INTERVAL_NS)),
                ]
                for n in LENGTHS
            }
            floor = per_event(
                {n: [str(bare), kind, str(n)] for n in LENGTHS}, "bare_loop", Path(name)
            )
            ours = per_event(measure, "eventway_receive_until_end", Path(name))
            print(f"{kind:9} {floor:7.1f} {ours:7.1f} {ours - floor:7.1f}")
            status |= ours - floor > MOST_MORE
    return status


if __name__ == "__main__":
    sys.exit(main())
