"""
What a shield of one CPU does to its latency, beside parameters of the boot.

Boots the virtual PC with each way to set CPU 1 apart, under a load of two workers that
may run on both CPUs, measures CPU 1, and prints the table of
docs/how-to/shield-cpus.md.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from rtscope.boards.catalogue import get_board, with_append
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.initrd import Job
from rtscope.boards.parts.prepare import prepare
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.runs.boot import boot
from rtscope.boards.runs.watchdog import BootTimeout
from rtscope.contract import AgentResult, Applied, require
from rtscope.host.units import NS_PER_S, NS_PER_US
from rtscope.machine.target import agent_file
from rtscope.measure.loads import get_load

SECONDS = 2
INTERVAL_NS = 200 * NS_PER_US
LOADS = ("os", "memory", "switch")
SHIELD = "cgroup_cpusets=present shield=1 default_irq_affinity=1 workqueue_cpumask=1"
FULL = "nohz_full=1 rcu_nocbs=1"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to set CPU 1 apart."""

    name: str
    append: str = ""
    shield: bool = False


WAYS = (
    Way("nothing"),
    Way("the shield", shield=True),
    Way("isolcpus=1", "isolcpus=1"),
    Way("nohz_full=1 rcu_nocbs=1", FULL),
    Way("both parameters", f"isolcpus=1 {FULL}"),
    Way("nohz_full=1 rcu_nocbs=1 and the shield", FULL, shield=True),
)


def script(load: str, *, shield: bool, seed: int) -> str:
    """Return what the board does: shield, load, warm-up, measurement inside."""
    argv = " ".join(get_load(load).argv).format(workers=2)
    settings = " ".join(f"--set {one}" for one in SHIELD.split())
    measure = (
        f"rtscope-agent measure --cpus 1 --priority 80 --interval-ns {INTERVAL_NS} "
        f"--duration-ns {SECONDS * NS_PER_S} --phase-ns {seed * 37_013}"
    )
    inside = (
        "rtscope-agent start --shield --given /out/given -- "
        if shield
        else "rtscope-agent start --given /out/given -- "
    )
    return "\n".join(
        [
            "mkdir -p /run",
            f"rtscope-agent apply {settings} >/out/applied" if shield else ":",
            f"stress-ng {argv} --seed {seed} --temp-path /tmp >/dev/null 2>&1 &",
            "load=$!",
            "sleep 1",
            "for f in /proc/[0-9]*/stat; do set -- $(cat $f); "
            'case "$2" in "(stress-ng"*) eval "last=\\${39}"; echo $last;; esac; done '
            ">/out/where",
            f"{inside}{measure} >/out/measured",
            "kill -0 $load && echo alive >/out/alive",
            "kill -9 $load",
        ]
    )


def measured(prepared: Prepared, way: Way, load: str, seed: int) -> AgentResult:
    """Return what one boot measured."""
    made = replace(prepared, board=with_append(prepared.board, way.append.split()))
    booted = boot(
        made,
        Job(script(load, shield=way.shield, seed=seed), disk=True),
        seed=seed,
        timeout=BootTimeout(SECONDS * NS_PER_S, 20 * NS_PER_S),
        stopped=lambda: False,
    )
    if way.shield:
        applied = {x.knob for x in booted.lines("applied") if isinstance(x, Applied)}
        assert "shield" in applied, booted.text("applied")
    assert booted.text("alive"), booted.text("script.log")
    lines = list(booted.lines("measured"))
    assert isinstance(lines[-1], AgentResult), lines
    where = booted.text("where").split()
    print(f"{way.name}, {load}, {seed}: load on CPU {where}", file=sys.stderr)
    return lines[-1]


def rows(
    prepared: Prepared, loads: Sequence[str], *, ways: Sequence[Way], seeds: int
) -> Iterator[str]:
    """Yield the table, a row for each way and load."""
    yield "| CPU 1 set apart by | load | average | maximum of each boot |"
    yield "|---|---|--:|---|"
    for way, load in product(ways, loads):
        threads = [
            measured(prepared, way, load, seed).threads[0]
            for seed in range(1, seeds + 1)
        ]
        count = sum(one.own.samples for one in threads)
        average = sum(require(one.sum_ns) for one in threads) / count / NS_PER_US
        most = ", ".join(f"{require(one.max_ns) / NS_PER_US:.1f}" for one in threads)
        yield f"| {way.name} | {load} | {average:.2f} µs | {most} µs |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", default="debian-6.12-rt")
    parser.add_argument("--loads", default=",".join(LOADS))
    parser.add_argument("--ways", default="", help="a text that their names have")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    context = BuildContext(cache=cache_dir(), agent=agent_file)
    prepared = prepare(get_board("pc"), args.kernel, context=context)
    ways = [way for way in WAYS if args.ways in way.name]
    for row in rows(prepared, args.loads.split(","), ways=ways, seeds=args.seeds):
        print(row, flush=True)


if __name__ == "__main__":
    main()
