"""
What watching a program costs its real-time thread: rtscope app check, on and off.

A thread of FIFO 97 wakes each millisecond and computes; `busy` also allocates, writes
to /dev/null and takes a page fault in each cycle. Each block runs it alone, under what
the tiers 0 to 2 watch (counters, stacks, tracepoints), with probes of the allocator too
(tier 3), under the recording of its cycles in a tracing instance, and under all of it,
as `rtscope app check` does; in random order. The test permutes the labels of runs
within blocks. Arguments: how many blocks, and another agent to measure.
"""

import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rtscope.machine.target import agent_file
from rtscope.programs.binaries.image import Image
from rtscope.programs.memorymap import parse_maps
from rtscope.stats.comparison.design import Dealt, FigureOfRuns, Slot
from rtscope.stats.comparison.effect import effects_of_runs

BUILD = Path(__file__).parent.parent / "build" / "bench"
BLOCKS = 8
SECONDS = 3
SETTLE_S = 0.7
"""From the first cycle: the probes are set within this time."""

WATCH, CYCLES, PROBES = "watch", "cycles", "probes"
VARIANTS: Mapping[str, frozenset[str]] = {
    "off": frozenset(),
    "tiers 0-2": frozenset({WATCH}),
    "tier 3": frozenset({WATCH, PROBES}),
    "cycles": frozenset({CYCLES}),
    "all": frozenset({WATCH, PROBES, CYCLES}),
}
FIGURES = ("wake-up median", "wake-up p99.9", "cycle median", "cycle p99.9")

PACED = r"""
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST 100000

static long wake[MOST], cycle[MOST];

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	return (*(const long *)a > *(const long *)b) -
		(*(const long *)a < *(const long *)b);
}

int main(int argc, char **argv)
{
	const long skip = atol(argv[1]), count = atol(argv[2]);
	const int busy = argc > 3;
	struct sched_param param = { .sched_priority = 97 };
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int null = open("/dev/null", O_WRONLY);
	volatile unsigned long sum = 1;
	cpu_set_t cpus;
	long next;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) || count > MOST ||
		mlockall(MCL_CURRENT | MCL_FUTURE) || munlock(page, 4096) ||
		syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &param)) /* not in musl */
		return 3;
	next = now_ns();
	for (long i = -skip; i < count; i++) {
		struct timespec until;
		long begin;

		next += 1000000;
		until.tv_sec = next / 1000000000;
		until.tv_nsec = next % 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		begin = now_ns();
		for (int j = 0; j < 20000; j++)
			sum = sum * 3 + 1;
		if (busy) {
			char *volatile p = malloc(100);

			free(p);
			if (write(null, "x", 1) != 1)
				return 4;
			madvise(page, 4096, MADV_DONTNEED);
			*(volatile char *)page = 1;
		}
		if (i >= 0) {
			wake[i] = begin - next;
			cycle[i] = now_ns() - begin;
		}
	}
	qsort(wake, count, sizeof(long), by_size);
	qsort(cycle, count, sizeof(long), by_size);
	printf("%ld %ld %ld %ld\n", wake[count / 2], wake[count * 999 / 1000],
		cycle[count / 2], cycle[count * 999 / 1000]);
	return 0;
}
"""


def built() -> Path:
    """Compile the program."""
    BUILD.mkdir(parents=True, exist_ok=True)
    source, out = BUILD / "paced.c", BUILD / "paced"
    source.write_text(PACED)
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-O2", "-o", out, source], check=True)
    return out


def probes_of(pid: int) -> list[str]:
    """Return the options that probe malloc and free of its C library."""
    for one in parse_maps(Path(f"/proc/{pid}/maps").read_text()):
        if one.executable and Path(one.path).name.startswith("libc."):
            image = Image(Path(one.path).read_bytes(), one.path)
            symbols = [s for n in ("malloc", "free") for s in image.functions_named(n)]
            return [
                word
                for s in symbols
                for word in (
                    "--probe",
                    f"{s.name}:{image.offset_of(s.vaddr)}:{one.path}",
                )
            ]
    raise SystemExit("no C library in its memory")


def lines_of(agent: Path, pid: int, parts: frozenset[str]) -> list[list[str]]:
    """Return the agents that a variant starts."""
    who = ("--pid", str(pid), "--duration-ns", str((SECONDS + 5) * 10**9))
    probes = probes_of(pid) if PROBES in parts else []
    lines = {
        WATCH: [str(agent), "watch", *who, "--stacks", "32", *probes],
        CYCLES: [str(agent), "cycles", *who],
    }
    return [line for part, line in lines.items() if part in parts]


def run(
    program: Path, agent: Path, parts: frozenset[str], mode: Sequence[str]
) -> tuple[float, ...]:
    """Run it once; return the figures in ns."""
    skip, count = round(1000 * 2 * SETTLE_S), 1000 * SECONDS
    argv = [str(program), str(skip), str(count), *mode]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as paced:
        time.sleep(SETTLE_S / 4)
        agents = [
            subprocess.Popen(line, stdout=subprocess.DEVNULL)
            for line in lines_of(agent, paced.pid, parts)
        ]
        said = paced.communicate()[0]
        if any([one.wait() for one in agents]):
            raise SystemExit("an agent could not watch")
    if paced.returncode:
        raise SystemExit(f"the program ended with {paced.returncode}: needs root")
    return tuple(float(word) for word in said.split())


def show(runs: Mapping[str, Sequence[tuple[float, ...]]], mode: str) -> None:
    """Print what each variant costs, with the p of the test over all figures."""
    blocks = len(runs["off"])
    for variant in list(VARIANTS)[1:]:
        slots = tuple(Slot(n // 2, bool(n % 2)) for n in range(2 * blocks))
        figures = [
            FigureOfRuns(
                tuple(range(2 * blocks)),
                tuple(
                    runs[("off", variant)[n % 2]][n // 2][at] for n in range(2 * blocks)
                ),
            )
            for at in range(len(FIGURES))
        ]
        tests = effects_of_runs(Dealt(slots), figures, alpha=0.05, seed=1)
        for at, (name, test) in enumerate(zip(FIGURES, tests, strict=True)):
            off = sorted(one[at] for one in runs["off"])[blocks // 2]
            more = sorted(
                b[at] - a[at] for a, b in zip(runs["off"], runs[variant], strict=True)
            )
            print(
                f"| {mode} | {variant} | {name} | {off / 1000:.1f} | "
                f"{more[blocks // 2] / 1000:+.2f} | {more[0] / 1000:+.2f} to "
                f"{more[-1] / 1000:+.2f} | {test.adjusted_p:.3f} |"
            )


def main() -> None:
    """Alternate the variants, and print a table in us; takes [BLOCKS [AGENT]]."""
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else BLOCKS
    agent = Path(sys.argv[2]) if len(sys.argv) > 2 else agent_file("x86_64")
    program = built()
    order = random.Random(1)
    print("| program | watched by | figure | off | more | least to most | p |")
    print("|---|---|---|---|---|---|---|")
    for mode in ("quiet", "busy"):
        runs: dict[str, list[tuple[float, ...]]] = {name: [] for name in VARIANTS}
        for _ in range(blocks):
            drawn = list(VARIANTS)
            order.shuffle(drawn)
            for variant in drawn:
                words = ["busy"] if mode == "busy" else []
                runs[variant].append(run(program, agent, VARIANTS[variant], words))
        show(runs, mode)


if __name__ == "__main__":
    main()
