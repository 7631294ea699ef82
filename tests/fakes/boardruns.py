"""
Records of a board under test: runs of one kernel whose maxima a test names.

    keep(place, runs_of([40, 41, 42, 43, 44], kernel="6.12.1"))
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from fakes.measurements import record, thread
from rtscope.machine.facts import FactValue
from rtscope.record.directory.records import create
from rtscope.record.model import RunRecord

NEAR_US = (0.0, 0.3, 0.6, 0.9, 1.2)
"""Five runs of one kernel differ by so much."""


def runs_of(
    maxima_us: Iterable[float],
    *,
    kernel: str = "6.12.1",
    load: str = "memory",
    interval_ns: int = 1_000_000,
    samples: int = 60,
    target: str = "ssh:board",
    facts: dict[str, str | int | bool | None] | None = None,
) -> list[RunRecord]:
    """Return one run of a kernel for each maximum."""
    about = {
        "kernel_release": kernel,
        "kernel_version": f"#1 SMP {kernel}",
        "kernel_cmdline": f"BOOT_IMAGE=/vmlinuz-{kernel} quiet",
        **(facts or {}),
    }
    return [
        record(
            # No two runs of a machine have equal results.
            [
                thread(
                    [*[5_000 + number] * (samples - 1), round(us * 1_000)],
                    interval_ns=interval_ns,
                )
            ],
            load,
            target=target,
            repetition=number,
            facts=about,
        )
        for number, us in enumerate(maxima_us, 1)
    ]


def near(base_us: float, **others: object) -> list[RunRecord]:
    """Return five runs with maxima from a base on; see `runs_of`."""
    return runs_of([base_us + step for step in NEAR_US], **others)  # type: ignore[arg-type]


def with_fact(run: RunRecord, name: str, value: str) -> RunRecord:
    """Return the run with another value of a fact."""
    known = {**run.facts_before, name: FactValue(value, "a test", reason="")}
    return replace(run, facts_before=known, facts_after=known)


def keep(place: Path, runs: Sequence[RunRecord]) -> Path:
    """Write records as `rtscope run --out` does."""
    store = create(place, {}, command=("rtscope", "run"))
    for run in runs:
        store.save(run)
    return place
