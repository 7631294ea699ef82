"""
The tables of docs/measured/price-list.md, from the result of `rtscope sweep price`.

    rtscope sweep --resume price --json > price.json
    python docs/pricelist.py price.json --cpu-s 7.1

Bold are the effects that the exact test has found. `--cpu-s` is the CPU time of a run,
which no record has: that of the sweep with its boards, by its runs.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

BUSY = ("os", "switch")
NOTHING = "-"

Effects = Mapping[tuple[str, str, str], Mapping[str, Any]]
"""By cell, load and figure."""


def effects_of(result: Mapping[str, Any]) -> Effects:
    """Sort the effects."""
    return {
        (one["cell"], one["key"][0], one["figure"]): one for one in result["effects"]
    }


def ratio(effect: Mapping[str, Any] | None, *, interval: bool = False) -> str:
    """Write a ratio to the base, bold if it was found."""
    if effect is None:
        return NOTHING
    text = f"{effect['ratio']:.3g}"
    if interval and effect["low"] is not None:
        text += f" ({effect['low']:.3g} to {effect['high']:.3g})"
    return f"**{text}**" if effect["found"] else text


def microseconds(effect: Mapping[str, Any] | None) -> str:
    """Write the median over seeds of a latency."""
    return NOTHING if effect is None else f"{effect['changed'] / 1_000:,.1f}"


def option_of(cell: str) -> str:
    """Write `boot: nohz=off` as code with its kind."""
    axis, _, level = cell.partition(": ")
    return f"`{level}` ({axis})" if level else "base"


def latencies(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of what was tested."""
    heads = ["option", "idle worst, µs"]
    for load in BUSY:
        heads += [f"{load} worst, µs", "ratio (95 %)", "p99.9", "average", "work"]
    yield from _head(heads)
    effects = effects_of(result)
    for cell in result["cells"][1:]:
        name = cell["name"]
        row = [option_of(name), microseconds(effects.get((name, "idle", "worst")))]
        for load in BUSY:
            worst = effects.get((name, load, "worst"))
            row += [microseconds(worst), ratio(worst, interval=True)]
            for figure in ("p99.9", "average", "operations/s"):
                row.append(ratio(effects.get((name, load, figure))))
        yield _row(row)


def costs(result: Mapping[str, Any], *, cpu_s: float) -> Iterator[str]:
    """Yield the table of what cells cost besides latency, the base first."""
    heads = ["option", "wake-ups/s, idle"]
    heads += [f"instructions per operation, {load}" for load in BUSY]
    yield from _head([*heads, "image, MiB", "available, MiB", "CPU s", "wall s"])
    for cell in result["cells"]:
        cost = cell["costs"]
        work = [cost["instructions"].get(load) for load in BUSY]
        yield _row(
            [
                option_of(cell["name"]),
                _number(cost["wakeups_per_s"]),
                *map(_number, work),
                _number(cost["kernel_bytes"], unit=1 << 20, digits=2),
                _number(cost["memory_available_kb"], unit=1_024, digits=1),
                _number(cell["runs"] * cpu_s),
                _number(cell["host_s"]),
            ]
        )


def _number(value: float | None, *, unit: int = 1, digits: int = 0) -> str:
    return NOTHING if value is None else f"{value / unit:,.{digits}f}"


def _head(heads: Sequence[str]) -> Iterator[str]:
    yield _row(heads)
    yield "|---|" + "---:|" * (len(heads) - 1)


def _row(columns: Sequence[str]) -> str:
    return f"| {' | '.join(columns)} |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("--cpu-s", type=float, required=True)
    given = parser.parse_args()
    result = json.loads(given.result.read_text())
    print("\n".join(latencies(result)))
    print()
    print("\n".join(costs(result, cpu_s=given.cpu_s)))


if __name__ == "__main__":
    main()
