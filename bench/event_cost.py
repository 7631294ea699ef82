"""
What an event costs the measuring thread in user-space instructions.

callgrind counts the receiving loop of the agent alone; the difference of two run
lengths leaves out start and end. Beside it the bare loop of the same calls (wait, read
the clock), so that it shows what number, histogram, sums and worst cost. A sample that
is a maximum, among the worst, or as long as its interval, takes a slow path of some 150
instructions, which is counted; more samples do on a busy machine.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from sampling_cost import AGENT, BUILD, INTERVAL_NS, compile_with_symbols

KINDS = (
    *("futex", "eventfd", "pipe", "signal", "mq", "sem", "cond"),
    *("pty", "udp", "raw", "xdp"),
)

LENGTHS = (4000, 24_000)
"""Long: of the first thousand samples many are among the worst until then."""

MOST_MORE = 30
"""Instructions of a sample above the bare loop. sem and cond may spin in libc."""

BARE = r"""
#include <errno.h>
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
		/* a full queue: the loop waits for each event */
		while (choice.kind->send(&ends, (uint32_t)i) == -EAGAIN)
			nanosleep(&ms, NULL);
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


def counted(argv: list[str], function: str, directory: Path) -> tuple[int, str]:
    """Return the instructions of a function with what it calls, and what it wrote."""
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
    return int(total[1]), done.stdout


def bare_cost(bare: Path, kind: str, directory: Path) -> float:
    """Return the instructions of one event in the bare loop, from two lengths."""
    short, long = (
        counted([str(bare), kind, str(n)], "bare_loop", directory)[0] for n in LENGTHS
    )
    return (long - short) / (LENGTHS[1] - LENGTHS[0])


def agent_cost(agent: Path, kind: str, directory: Path) -> float:
    """Return the same of the agent, which skips events when the machine is busy."""
    counts = []
    for n in LENGTHS:
        argv = [
            *(str(agent), "measure", "--policy", "other", "--cpus", "1"),
            *("--event", kind, "--interval-ns", str(INTERVAL_NS)),
            *("--duration-ns", str(n * INTERVAL_NS)),
        ]
        total, text = counted(argv, "eventway_receive_until_end", directory)
        result = json.loads(text.splitlines()[-1])
        counts.append((total, sum(t["samples"] for t in result["threads"])))
    (short, few), (long, many) = counts
    return float((long - short) / (many - few))


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
    print("event        bare   agent    more", flush=True)
    with tempfile.TemporaryDirectory() as name:
        for kind in sys.argv[1:] or KINDS:
            floor = bare_cost(bare, kind, Path(name))
            more = agent_cost(agent, kind, Path(name)) - floor
            print(f"{kind:9} {floor:7.1f} {floor + more:7.1f} {more:7.1f}", flush=True)
            status |= more > MOST_MORE
    return status


if __name__ == "__main__":
    sys.exit(main())
